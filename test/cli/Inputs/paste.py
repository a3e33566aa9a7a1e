# SPDX-License-Identifier: Apache-2.0
"""paste.py QUERN ARGUMENTS..: runs a command with QUERN_VERBOSE=1, then pastes the commands of its lines into a shell:
that of the kernel must print the plan of the kernel, that of the run what the run printed."""
import os
import re
import subprocess
import sys
import tempfile

quern, *words = sys.argv[1:]
run = subprocess.run([quern, *words], capture_output=True, text=True, check=True,
                     env=dict(os.environ, QUERN_VERBOSE="1"))
lines = {kind: command
         for kind, command in re.findall(r'^quern,(compile|run),.*?,repro="(.*)"$', run.stderr, re.MULTILINE)}
assert sorted(lines) == ["compile", "run"], run.stderr
with tempfile.TemporaryDirectory() as folder:
    os.symlink(quern, os.path.join(folder, "quern"))
    paths = dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"])
    pasted = {kind: subprocess.run(command, shell=True, capture_output=True, text=True, env=paths)
              for kind, command in lines.items()}
assert pasted["run"].stdout == run.stdout and run.stdout, pasted["run"]
plan = pasted["compile"].stdout
assert plan.startswith("plan "), pasted["compile"]
for word in words:
    if re.fullmatch("[a-z_]+=[0-9]+", word):
        assert word.replace("=", " = ") in plan, plan
