from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rig import Server

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_of_the_readme_print_what_they_say(mortal: Server, tmp_path: Path) -> None:
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S))
    (tmp_path / "readme.py").write_text(program)
    ran = subprocess.run(
        [sys.executable, "readme.py"],
        cwd=tmp_path,
        env={"LOOMLINE_SERVER": mortal.base},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said = re.findall(r"^ *print\(.*\)  # (.+)$", program, re.M)
    assert len(said) > 15
    printed = iter(ran.stdout.splitlines())
    assert [line for line in said if line not in printed] == []
