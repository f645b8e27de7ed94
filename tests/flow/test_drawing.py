"""Pictures of stages: well-formed, complete, nothing overlaps, and a leak can be seen."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.flow.catalogue import CATALOGUE
from vitrail.flow.drawing import BLUE, BOX_WIDTH, DARK, LETTERS_PER_LINE, ORANGE, RED

SVG = "{http://www.w3.org/2000/svg}"
ROOT = Path(__file__).resolve().parents[2]


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    found = [one for one in ElementTree.fromstring(svg).iter(f"{SVG}rect") if one.get("width") == f"{BOX_WIDTH:.0f}"]
    return [tuple(float(one.get(key, "nan")) for key in ("x", "y", "width", "height")) for one in found]  # type: ignore[misc]


@pytest.mark.parametrize("name", CATALOGUE)
def test_all_stages_are_drawn_inside_the_picture_and_apart(name: str) -> None:
    stages = CATALOGUE[name]
    svg = stages.draw().svg()
    drawn = boxes(svg)
    assert len(drawn) == len(stages) + 1
    _, _, width, height = map(float, ElementTree.fromstring(svg).get("viewBox", "").split())
    for x, y, w, h in drawn:
        assert x >= 0
        assert x + w <= width
        assert y >= 0
        assert y + h <= height
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(drawn, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    edges = sum(len(stage.after) for stage in stages)
    assert svg.count("marker-end") == edges
    assert all(stage.name in svg for stage in stages)


@pytest.mark.parametrize("name", CATALOGUE)
def test_edges_cross_no_box(name: str) -> None:
    """Points along each edge, ends left out, lie in no box."""
    svg = CATALOGUE[name].draw().svg()
    for path in re.findall(r'<path d="(M[^"]*)" fill="none"', svg):
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path)]
        start, corners = (numbers[0], numbers[1]), []
        for letter, rest in re.findall(r"([CL])([^CL]*)", path):
            values = [float(number) for number in re.findall(r"-?\d+\.?\d*", rest)]
            end = (values[-2], values[-1])
            for t in (i / 10 for i in range(1, 10)):
                if letter == "C":
                    a, b = (1 - t) ** 3 + 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2 + t**3
                    c0, c1, c2, c3 = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
                    corners.append(
                        (a * start[0] + b * end[0], c0 * start[1] + c1 * values[1] + c2 * values[3] + c3 * end[1])
                    )
                else:
                    corners.append((start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1])))
            start = end
        for x, y in corners:
            assert not any(left < x < left + w and top < y < top + h for left, top, w, h in boxes(svg))


def test_a_leak_is_seen() -> None:
    sound, leaking = vt.flow.of("published/PDP").draw(), vt.flow.of("published/PDP code").draw()
    assert sound.separator == ("y values", "rug")
    assert leaking.separator == ()
    assert ORANGE in sound.svg()
    assert ORANGE not in leaking.svg()
    dark = {picture: picture.svg().count(f'fill="none" stroke="{DARK}"') for picture in (sound, leaking)}
    assert dark[sound] == 2  # rows to y values and to the rug
    assert dark[leaking] == 4  # also from x values to both
    red = {picture: picture.svg().count(f'fill="none" stroke="{RED}"') for picture in (sound, leaking)}
    assert red == {sound: 0, leaking: 3}  # rows, categories, x values, explanation


def test_any_separator_can_be_shown() -> None:
    stages = vt.flow.of("plain/PDP")
    assert stages.draw().separator == ()
    picture = stages.draw(["y values", "x values"])
    assert picture.separator == ("x values", "y values")
    assert picture.svg().count(f'stroke="{ORANGE}"') == 2 + 1  # and once in the legend
    assert f'fill="none" stroke="{BLUE}"' in picture.svg()
    with pytest.raises(InvalidInput, match="rows -> x values -> explanation"):
        stages.draw(["y values"])


def test_names_are_only_text() -> None:
    odd = 'a "b" <c> & #d'
    stages = vt.flow.Stages("<t>").stage(odd, after=["rows"], does="x" * 100).stage("explanation", after=[odd])
    svg = stages.draw().svg()
    texts = [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert odd in texts
    assert max(len(text) for text in texts if set(text) == {"x"}) <= LETTERS_PER_LINE
    assert '"a #quot;b#quot; #lt;c#gt; #amp; #35;d<br/>' in stages.draw().mermaid()


def test_mermaid_has_every_stage_and_edge() -> None:
    stages = vt.flow.of("Marginals")
    assert stages.draw().mermaid() == (
        "flowchart TD\n"
        '    s0[("rows<br/>private")]\n'
        '    s1["bins<br/>of every column, from the schema"]\n'
        '    s2["counts<br/>of all columns, one vector of<br/>norm sqrt(d)<br/>released: BoundedSum"]\n'
        '    s3(["explanation<br/>shares, means, quantiles"])\n'
        "    s0 --> s2\n"
        "    s1 -.-> s2\n"
        "    s1 -.-> s3\n"
        "    s2 --> s3\n"
        "    classDef released fill:#d6e6f7,stroke:#1d5fa8\n"
        "    class s2 released\n"
        "    classDef public fill:#ffffff,stroke:#6b7280,stroke-dasharray:5 4\n"
        "    class s1 public\n"
        "    classDef separator stroke:#c2410c,stroke-width:3px\n"
        "    class s2 separator\n"
    )


def test_drawings_are_saved_and_shown(tmp_path: Path) -> None:
    picture = vt.flow.of("Shapley").draw()
    assert picture.save(tmp_path / "flow.svg").read_text() == picture.svg() == picture._repr_svg_()
    assert picture.save(str(tmp_path / "flow.mmd")).read_text() == picture.mermaid()
    with pytest.raises(InvalidInput, match=r"\.svg or \.mmd"):
        picture.save(tmp_path / "flow.png")


@pytest.mark.parametrize(
    ("file", "name"),
    [("flow_accumulated_effects.svg", "AccumulatedEffects"), ("flow_published_pdp.svg", "published/PDP code")],
)
def test_the_figures_in_the_docs_are_what_is_drawn(file: str, name: str) -> None:
    assert (ROOT / "docs" / "figures" / file).read_text() == vt.flow.of(name).draw().svg()
