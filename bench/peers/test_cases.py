"""Tests of what needs no engine: `python3 -B -m unittest discover bench/peers`."""

import re
import unittest

import cases
import queries
import tpch
from figures import figures
from plan import Settings
from queries import Random

SETTINGS = Settings(scale=1.0, seed=7, quick=False, keys=(1, 6_000_000), stagger=0.03, rate=30.0)


def texts(phase: dict, plan) -> list[str]:
    return [plan.queries[position].sql for stream in phase["streams"] for _, position in stream]


class Cases(unittest.TestCase):
    def test_equal_settings_give_equal_plans(self):
        for case, plan in cases.PLANS.items():
            self.assertEqual(plan(SETTINGS), plan(SETTINGS), case)

    def test_streams_differ_by_constants_only(self):
        plans = {case: cases.PLANS[case](SETTINGS)
                 for case in ("streams-cached", "streams-own-constants", "streams-distinct")}
        names = {case: [[plan.queries[position].name for _, position in stream] for stream in plan.phases[0]["streams"]]
                 for case, plan in plans.items()}
        keys = {case: [re.findall(r"l_orderkey BETWEEN .*", text) for text in texts(plan.phases[0], plan)]
                for case, plan in plans.items()}
        for case in plans:
            self.assertEqual(names[case], names["streams-cached"])
            self.assertEqual(keys[case], keys["streams-cached"])
        self.assertEqual(plans["streams-cached"].own_constants, 0)
        self.assertIn(plans["streams-own-constants"].own_constants, range(1, 10))
        self.assertEqual(plans["streams-distinct"].own_constants, 64)

    def test_no_two_distinct_queries_share_a_constant(self):
        seen = set(re.findall(r"[\d.-]*\d", " ".join(queries.CONSTANTS.values())))
        for index in range(cases.STREAMS * cases.QUERIES_PER_STREAM):
            own = set(re.findall(r"[\d.-]*\d", " ".join(queries.own_constants(index).values())))
            self.assertFalse(own & seen, own & seen)
            seen |= own

    def test_no_query_of_the_case_alone_is_repeated(self):
        plan = cases.PLANS["alone"](SETTINGS)
        asked = texts(plan.phases[0], plan)
        self.assertEqual(len(set(asked)), len(asked))

    def test_each_stream_of_each_phase_of_tpch_has_other_parameters(self):
        plan = cases.PLANS["tpch"](SETTINGS)
        streams = [frozenset(position for _, position in stream)
                   for phase in plan.phases for stream in phase["streams"]]
        self.assertEqual(len(set(streams)), 1 + 4 + 16)

    def test_only_the_dashboard_keeps_its_process(self):
        jobs = {case: len(plan(SETTINGS).jobs()) for case, plan in cases.PLANS.items()}
        self.assertEqual(jobs["dashboard"], 1)
        self.assertEqual(jobs["tpch"], 3)
        self.assertEqual(jobs["open-loop"], 1 + len(cases.LOADS))

    def test_every_parameter_of_tpch_is_filled_in(self):
        for number in range(1, 23):
            drawn = {tpch.drawn(number, Random(seed), 1.0).sql for seed in range(50)}
            self.assertGreater(len(drawn), 3, number)
            for sql in drawn | {tpch.validation(number, 1.0).sql}:
                self.assertNotRegex(sql, "[{}]")


class Figures(unittest.TestCase):
    def test_the_highest_rate_is_that_of_the_last_load_at_which_nobody_waits_too_long(self):
        def phase(name: str, latency_s: float) -> dict:
            used = {"cpu_s": 1.0, "peak_bytes": 1, "device_bytes": 0, "call_bytes": 0}
            return {"name": name, "used": used, "streams": [[[0, 0.0, latency_s, None, None]]]}

        def run(engine: str, *latencies_s: float) -> dict:
            return {"engine": engine, "round": 0, "phases": list(map(phase, names, latencies_s))}

        names = [cases.TIMES_ALONE, *map(cases.phase_of_load, cases.LOADS[:3])]
        case = {"phases": names, "queries": ["F-01"], "rate": 20.0,
                "runs": [run("coscan", 1.0, 2.0, 6.0, 2.0), run("duckdb", 1.0, 6.0, 6.0, 6.0)]}
        results = {"options": {"engines": ["coscan", "duckdb"]}, "cases": {"open-loop": case}}
        highest = figures(results, "open-loop")[-1]
        self.assertEqual(highest.values, {"coscan": [cases.LOADS[0] * 20.0], "duckdb": [0.0]})


if __name__ == "__main__":
    unittest.main()
