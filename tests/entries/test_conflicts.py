"""Texts that share most of their words and yet say something else: such memories are never called near-duplicates."""

from __future__ import annotations

import pytest

from mindex.entries.conflict_rules import contradict
from mindex.entries.near_duplicates import NEAR_OVERLAP, keywords, overlap
from tests.entries.near import is_near


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Postgres listens on port 5432", "Postgres listens on port 5433"),
        ("The app runs on release v2.1", "The app runs on release v2.2"),
        ("Call Anna Lindqvist at 3 pm", "Call Anna Lindqvist at 4 pm"),
        ("Call Anna Lindqvist at 3 p.m.", "Call Anna Lindqvist at 3 a.m."),
        ("The release is on 2026-03-01", "The release is on 2026-03-02"),
        ("10 of 12 nightly builds passed", "12 of 12 nightly builds passed"),
        ("User has two children in school", "User has three children in school"),
        ("The weekly review is on Monday", "The weekly review is on Tuesday"),
        ("会议在星期一下午开始", "会议在星期二下午开始"),
    ],
)
def test_texts_whose_numbers_or_dates_differ_contradict(a: str, b: str) -> None:
    assert overlap(keywords(a), keywords(b)) > 0.4
    assert contradict(a, b)
    assert not is_near(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("User likes tea with milk", "User does not like tea with milk"),
        ("User uses Vim for editing", "User no longer uses Vim for editing"),
        ("User drinks coffee at night", "User never drinks coffee at night"),
        ("The nightly build is stable", "The nightly build isn't stable"),
        ("The nightly build is stable", "The nightly build isn’t stable"),
        ("Deploys need approval from Anna", "Deploys need no approval from Anna"),
        ("Anna mag starken Kaffee sehr", "Anna mag starken Kaffee nicht sehr"),
        ("Anna trinkt morgens Kaffee", "Anna trinkt morgens keinen Kaffee"),
        ("Ana come carne los viernes", "Ana nunca come carne los viernes"),
        ("Elle aime le café noir", "Elle n’aime pas le café noir"),
        ("用户喜欢喝黑咖啡", "用户不喜欢喝黑咖啡"),
        ("用户安装了测试版软件", "用户没安装测试版软件"),
    ],
)
def test_a_text_and_its_denial_contradict(a: str, b: str) -> None:
    assert overlap(keywords(a), keywords(b)) >= NEAR_OVERLAP
    assert contradict(a, b)
    assert not is_near(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Telemetry is enabled in release builds", "Telemetry is disabled in release builds"),
        ("The firewall allows traffic from Oslo", "The firewall denies traffic from Oslo"),
        ("Take the medicine before lunch", "Take the medicine after lunch"),
        ("User loves long team meetings", "User hates long team meetings"),
    ],
)
def test_a_text_and_its_opposite_contradict(a: str, b: str) -> None:
    assert overlap(keywords(a), keywords(b)) >= NEAR_OVERLAP
    assert contradict(a, b)
    assert not is_near(a, b)
