"""The adversary, measured: attacks, claims, reconstruction, speed. Writes benchmarks/results/audit.json.

    python benchmarks/audit.py --data FOLDER                        # all parts
    python benchmarks/audit.py --data FOLDER --only claims alarms   # some
    python benchmarks/audit.py --data FOLDER --quick                # small, to see that it runs; writes nothing
    python benchmarks/audit.py --data FOLDER --device cuda          # networks on a GPU
    python benchmarks/audit.py --collect                            # write the parts that are finished

Finished parts are kept in ``--cache``, so that they can be measured on different machines.
"""

from __future__ import annotations

import argparse

from bench_data import data_folder
from running import Benchmark, Figure, Part, options_of, run


def location(options: argparse.Namespace) -> Part:
    import audit_models

    return Part(*audit_models.location_rows(data_folder(options.data), options.device, options.quick))


def speed(options: argparse.Namespace) -> Part:
    import audit_models

    return Part(*audit_models.speed_rows(data_folder(options.data), options.device, options.quick))


def reconstruction(options: argparse.Namespace) -> Part:
    import audit_models

    return Part(*audit_models.reconstruction_rows(data_folder(options.data), options.device, options.quick))


def private(options: argparse.Namespace) -> Part:
    import audit_private

    return Part(*audit_private.private_rows(options.quick))


def claims(options: argparse.Namespace) -> Part:
    import audit_claims

    rows = audit_claims.breach_rows(options.quick)
    caught = sum(row["verdict"] == "refuted" for row in rows)
    return Part({"breaches_caught": caught, "breaches": len(rows)}, rows, {"confidence": audit_claims.CONFIDENCE})


def alarms(options: argparse.Namespace) -> Part:
    import audit_claims

    audits, draws = (24, 2000) if options.quick else (200, 20_000)
    rows = audit_claims.false_alarm_rows(audits, draws)
    return Part({"false_alarms": sum(int(str(row["refuted"])) for row in rows)}, rows, {"audits": audits, "draws": draws})


def interpret(options: argparse.Namespace) -> Part:
    import audit_interpret

    draws = 1000 if options.quick else 4000
    return Part({}, audit_interpret.interpret_rows(draws), {"needs": "interpret-core, which nothing else here needs"})


BENCHMARK = Benchmark[argparse.Namespace](
    name="audit",
    script="benchmarks/audit.py",
    quick="few draws, few models",
    partial=True,
    torch=True,
    figures={
        "claims": Figure(claims),
        "alarms": Figure(alarms),
        "reconstruction": Figure(reconstruction),
        "speed": Figure(speed),
        "location": Figure(location),
        "private": Figure(private),
        "interpret": Figure(interpret, needs="interpret"),
    },
)


def main() -> None:
    run(BENCHMARK, options_of(BENCHMARK, __doc__).parse_args(), lambda options: options)


if __name__ == "__main__":
    main()
