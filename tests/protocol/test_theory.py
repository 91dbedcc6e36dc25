"""The drawings in the theory of operation can be read, and the machine makes them."""

import re

import replication.protocol
from replication.machine.scenario import run_scenario
from replication.protocol.ground.picture import draw, read

DOC = replication.protocol.__doc__ or ""
ROW = re.compile(r"^ +([A-Z][*!]? +e[\d-]+  .*)$", re.MULTILINE)


def test_every_drawing_is_one() -> None:
    rows = ROW.findall(DOC)

    assert len(rows) == 8
    for row in rows:
        contents: list[str] = []
        [read_back] = read([row], contents)
        drawn = draw([read_back], lambda c, names=contents: names[c])[0]
        assert drawn.split() == row.split()


def test_the_first_generation_does_what_the_text_says() -> None:
    """A restarts, cuts m2, B dies, A leads; then A writes m3 and B returns."""
    told = run_scenario(
        "given isr=A,B kafka=0.10.2\nA  e0  0:m1 | 0:m2\nB* e0  0:m1 0:m2 |\n----\nok\n\n"
        "restart A\nstop B\nelect A isr=A\n----\n\n"
        "produce A m3\nstart B\nfetch B\n----\n"
    )[1]

    rows = ROW.findall(DOC)
    assert "\n".join(rows[2:4]) in told
    assert "\n".join(rows[4:6]) in told


def test_the_second_and_third_generation_do_what_the_text_says() -> None:
    rows = [row + " |" for row in ROW.findall(DOC)[6:8]]
    text = "given isr=A kafka={} unclean=yes\n{}\n----\nok\n\ndeliver B\nfetch B\n----\n"

    kip_101 = run_scenario(text.format("1.1.1", "\n".join(rows)))[1]
    kip_279 = run_scenario(text.format("2.0.0", "\n".join(rows)))[1]

    assert "B  e3  1:x 2:y*2 3:z |" in kip_101
    assert "B truncates 3 -> 1" in kip_279
    assert "B  e3  1:x*3 3:z |" in kip_279
