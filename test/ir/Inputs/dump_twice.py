# SPDX-License-Identifier: Apache-2.0
"""dump_twice.py QUERN STAGE.. -- ARGUMENTS..: runs `quern dump STAGE ARGUMENTS` twice for each stage and compares the
bytes."""
import subprocess
import sys

quern, rest = sys.argv[1], sys.argv[2:]
split = rest.index("--")
for stage in rest[:split]:
    dumps = [subprocess.run([quern, "dump", stage, *rest[split + 1:]], capture_output=True, check=True).stdout
             for _ in range(2)]
    if not dumps[0] or dumps[0] != dumps[1]:
        sys.exit(f"{stage}: {len(dumps[0])} bytes and {len(dumps[1])} bytes differ or are empty")
