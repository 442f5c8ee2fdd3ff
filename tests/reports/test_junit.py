"""JUnit: the shape that build servers read, and verdicts that cannot be mistaken for a pass."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import msgspec

from nemesis.checkers.framework.model import Finding, Outcome, Result, Verdict
from nemesis.reports.junit import render
from tests.reports import story
from tests.reports.conftest import Reported

EVENT = {"time": 1_500_000_000, "process": "broker-1", "kind": "high-watermark", "offset": 4}


def suite(*results: Result, problems: tuple[str, ...] = ()) -> ET.Element:
    outcome = Outcome(
        verdict=Verdict.UNKNOWN,
        results=results,
        events=3,
        engine="inline",
        seconds=1.25,
        problems=problems,
    )
    root = ET.fromstring(render(story.info(), outcome))
    assert root.tag == "testsuites"
    (element,) = root
    for name in ("tests", "failures", "errors", "skipped"):
        assert root.get(name) == element.get(name)
    cases = element.findall("testcase")
    assert element.get("tests") == str(len(cases))
    assert element.get("failures") == str(len(element.findall("testcase/failure")))
    assert element.get("errors") == str(len(element.findall("testcase/error")))
    return element


def broken(sentence: str, verdict: Verdict = Verdict.INVALID) -> Result:
    finding = Finding(
        property="hw-bounded",
        verdict=verdict,
        key="orders-0",
        sentence=sentence,
        steps=("It was low.", "It went up."),
        events=(EVENT,),
        faults=("pause on broker-2",),
    )
    return Result(
        property="hw-bounded", verdict=verdict, checked=9, findings=(finding,), finding_count=31
    )


def test_a_property_that_held_passes() -> None:
    (case,) = suite(Result(property="hw-grows", verdict=Verdict.VALID, checked=1234)).findall(
        "testcase"
    )
    assert (case.get("classname"), case.get("name")) == ("nemesis.partition-controller", "hw-grows")
    assert [child.tag for child in case] == ["system-out"]
    assert case.findtext("system-out") == "1,234 events checked"
    (case,) = suite(Result(property="hw-grows", verdict=Verdict.VALID, checked=1)).findall(
        "testcase"
    )
    assert case.findtext("system-out") == "1 event checked"


def test_a_property_that_is_broken_as_known_passes_and_says_so() -> None:
    result = broken("It was above.", Verdict.VALID)
    known = msgspec.structs.replace(result.findings[0], known="KIP-966")
    (case,) = suite(msgspec.structs.replace(result, findings=(known,))).findall("testcase")
    assert [child.tag for child in case] == ["system-out"]
    assert case.findtext("system-out") == (
        "9 events checked; broken by known behaviour (KIP-966), not counted in the verdict: orders-0: It was above."
    )


def test_a_broken_property_fails_with_its_proof_and_its_replay() -> None:
    (failure,) = suite(broken("It is too high.")).findall("testcase/failure")
    assert failure.get("message") == "It is too high."
    assert failure.get("type") == "invalid"
    text = failure.text or ""
    assert "orders-0: It is too high." in text
    assert "  1. It was low.\n  2. It went up.\n" in text
    assert "during pause on broker-2" in text
    assert "1.500000s broker-1 high-watermark offset=4" in text
    assert "31 findings in all" in text
    assert f"replay: {story.info().replay}" in text


def test_an_undecided_property_is_an_error_and_not_skipped() -> None:
    element = suite(
        broken("Nobody knows.", Verdict.UNKNOWN),
        Result(property="hw-grows", verdict=Verdict.UNKNOWN, checked=0),
    )
    messages = [error.get("message") for error in element.findall("testcase/error")]
    assert messages == ["Nobody knows.", "Nothing was observed."]
    assert element.get("skipped") == "0"


def test_a_history_with_problems_is_an_error_of_its_own() -> None:
    held = Result(property="hw-grows", verdict=Verdict.VALID, checked=1)
    element = suite(held, problems=("broker-2.jsonl is torn",))
    (case,) = [each for each in element.findall("testcase") if each.get("name") == "history"]
    assert case.find("error") is not None
    assert element.get("errors") == "1"


def test_what_xml_cannot_hold_is_replaced() -> None:
    (failure,) = suite(broken("a \x00\x1b\ud800 & <b>\uffff ]]> end")).findall("testcase/failure")
    assert failure.get("message") == "a ��� & <b>� ]]> end"


def test_the_file_of_a_run_has_a_case_for_each_property(reported: Reported) -> None:
    root = ET.fromstring(reported.run.junit_file.read_bytes())
    verdicts = {
        case.get("name"): "failure"
        if case.find("failure") is not None
        else "error"
        if case.find("error") is not None
        else "pass"
        for case in root.iter("testcase")
    }
    words = {"invalid": "failure", "unknown": "error", "valid": "pass"}
    assert verdicts == {
        result.property: words[result.verdict.value] for result in reported.outcome.results
    }
    about = {element.get("name"): element.get("value") for element in root.iter("property")}
    assert about["seed"] == "7"
    assert about["verdict"] == "invalid"
