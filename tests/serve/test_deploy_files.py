"""The examples of deploy/: read, not run. They parse, name what exists, pin what they pull, and say they are untested."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from vitrail import __version__
from vitrail.cli.serve import app

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILES = ("Containerfile", "compose.yaml", ".env.example", "Caddyfile", "nginx.conf", "vitrail.service")
INSTRUCTIONS = {
    *("FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
}


def read(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def instructions():
    """Each instruction of the Containerfile as one line."""
    lines = [line for line in read("Containerfile").replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(None, 1)) for line in lines]


def pinned(image):
    """Whether an image is named with the version that is wanted."""
    _, colon, tag = image.rpartition(":")
    return bool(colon) and bool(re.match(r"\d+\.\d+", tag))


@pytest.mark.parametrize("name", FILES)
def test_each_says_on_top_that_it_is_untested(name):
    assert "UNTESTED" in "\n".join(read(name).splitlines()[:3])
    assert f"`{name}`" in read("README.md")


def test_the_containerfile_has_known_instructions_and_copies_what_exists():
    found = instructions()
    assert {word for word, _ in found} <= INSTRUCTIONS
    copied = [shlex.split(rest) for word, rest in found if word == "COPY" and not rest.startswith("--from")]
    sources = [name for words in copied for name in words[:-1]]
    assert "pyproject.toml" in sources
    assert [name for name in sources if not (ROOT / name).exists()] == []
    assert all(pinned(rest.split(" AS ")[0]) for word, rest in found if word == "FROM")


def test_the_image_runs_as_somebody_without_rights():
    words = [word for word, _ in instructions()]
    assert "USER" in words
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(instructions())["USER"] != "root"


def test_compose_is_yaml_with_pinned_images_and_known_names():
    whole = yaml.safe_load(read("compose.yaml"))
    services = whole["services"]
    assert set(services) == {"vitrail", "ledger", "proxy"}
    for service in services.values():
        assert pinned(service["image"])
        assert set(service["networks"]) <= set(whole["networks"])
        for place in service.get("volumes", ()):
            source = place.split(":")[0]
            assert source.startswith("${") or source in whole["volumes"] or (DEPLOY / source).exists(), place
        for secret in service.get("secrets", ()):
            assert (secret if isinstance(secret, str) else secret["source"]) in whole["secrets"]
    assert services["vitrail"]["image"] == f"vitrail:{__version__}"
    build = services["vitrail"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).exists()
    assert "ports" not in services["vitrail"]  # reached through the proxy alone
    assert "ports" not in services["ledger"]
    assert whole["networks"]["inside"]["internal"] is True


def test_every_setting_of_compose_is_in_the_example():
    wanted = set(re.findall(r"\$\{(\w+)", read("compose.yaml")))
    given = {line.split("=")[0] for line in read(".env.example").splitlines() if line and not line.startswith("#")}
    assert wanted == given
    assert not re.search(r"(?i)password=\S*\w{6,}", read(".env.example").replace("PASSWORD_FILE", ""))


def test_nothing_is_pulled_without_a_version():
    for name in FILES:
        assert ":latest" not in read(name)
    assert not pinned("caddy:latest")
    assert not pinned("postgres")


def vitrail_commands():
    """What the files run `vitrail` with."""
    found = dict(instructions())
    yield [*re.findall(r'"([^"]*)"', found["ENTRYPOINT"]), *re.findall(r'"([^"]*)"', found["CMD"])]
    for line in read("vitrail.service").splitlines():
        if line.startswith(("ExecStart=", "ExecStartPre=")):
            yield line.partition("=")[2].split()


def test_the_commands_have_the_options_that_they_use():
    commands = [*vitrail_commands()]
    assert len(commands) == 3
    known = {option for parameter in get_command(app).commands["start"].params for option in parameter.opts}
    for words in commands:
        assert Path(words[0]).name == "vitrail"
        assert words[1:3] == ["serve", "house.toml"]
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_proxies_pass_on_events_at_once_and_hide_metrics(name):
    text = re.sub(r"#.*", "", read(name))
    assert text.count("{") == text.count("}")
    assert ("proxy_buffering off" if name == "nginx.conf" else "flush_interval -1") in text
    assert re.search(r"/metrics.*404|respond @inside 404", text)
    assert "X-Forwarded-Proto" in text
    # What the client itself says about where it comes from is replaced, not passed on.
    assert "proxy_add_x_forwarded_for" not in text


def test_the_unit_waits_longer_than_the_service_drains():
    unit = read("vitrail.service")
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) > 30
    assert int(yaml.safe_load(read("compose.yaml"))["services"]["vitrail"]["stop_grace_period"].rstrip("s")) > 30
    assert "NoNewPrivileges=yes" in unit
