"""A PostgreSQL server for the tests: the one that ``VITRAIL_TEST_POSTGRESQL`` names, or a throw-away one of our own.

The variable holds the address of a database that may be emptied. Without it, a server is started where its programs are
installed (Debian: the package ``postgresql``), in a temporary folder, reachable through a socket in that folder alone.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMED = os.environ.get("VITRAIL_TEST_POSTGRESQL")
# Where Debian puts what it does not put on the path; the newest version is the last one.
DEBIAN = "/usr/lib/postgresql"


def programs() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``, if there is one."""
    on_path = shutil.which("pg_ctl")
    folders = [Path(on_path).parent] if on_path else sorted(Path(DEBIAN).glob("*/bin"), key=lambda at: float(at.parent.name))
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


def missing() -> str | None:
    """Why there is no PostgreSQL to test with; None if there is."""
    if NAMED or (programs() and (os.getuid() != 0 or _unprivileged())):
        return None
    return "PostgreSQL is not installed here (Debian: postgresql), and VITRAIL_TEST_POSTGRESQL names no database"


def _unprivileged() -> str | None:
    """The user that runs the server where the tests are root's, because PostgreSQL refuses to be root's."""
    import pwd

    known = {user.pw_name for user in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@contextmanager
def running(*, durable: bool = False) -> Iterator[str]:
    """The address of a database, while its server runs; only a ``durable`` one waits for the disk, to be measured."""
    if NAMED:
        yield NAMED
        return
    folder = programs()
    if folder is None:
        raise FileNotFoundError(missing())
    user = _unprivileged() if os.getuid() == 0 else None
    # Not pytest's own folder, whose parents are closed to other users and whose path may be too long for a socket.
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    if user:
        shutil.chown(home, user)

    def call(program: str, *arguments: str) -> None:
        subprocess.run(
            [folder / program, "-D", home / "data", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            user=user,
            cwd=home,
        )

    try:
        call("initdb", "--auth=trust", "--username=vitrail", "--no-sync", "--encoding=UTF8")
        settings = f"-c listen_addresses= -c unix_socket_directories={home} -c fsync={'on' if durable else 'off'}"
        call("pg_ctl", "--wait", f"--log={home / 'log'}", f"--options={settings}", "start")
        try:
            yield f"postgresql+psycopg://vitrail@/postgres?host={home}"
        finally:
            call("pg_ctl", "--wait", "--mode=immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
