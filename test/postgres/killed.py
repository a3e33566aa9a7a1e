# SPDX-License-Identifier: Apache-2.0
"""Kills a process that has a scratch cluster, and waits until its server has ended: killed.py"""

import os
import shutil
import signal
import subprocess
import sys
import time

CHILD = """
import time, cluster
pg = cluster.Cluster()
print(pg.folder, pg._server.pid, flush=True)
time.sleep(3600)
"""

here = os.path.dirname(os.path.abspath(__file__))
child = subprocess.Popen([sys.executable, "-c", CHILD], cwd=here, stdout=subprocess.PIPE, text=True)
folder, pid = child.stdout.readline().rsplit(" ", 1)
child.send_signal(signal.SIGKILL)
child.wait()
while True:
    try:
        with open(f"/proc/{int(pid)}/stat", encoding="ascii") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "Z":  # ended; nobody has asked for its status
                break
    except FileNotFoundError:
        break
    time.sleep(0.02)
shutil.rmtree(folder, ignore_errors=True)
print("the server ended")
