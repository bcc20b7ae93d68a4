"""Kill operations at random and at exact moments, 200 times: earlier files must survive, and the next run finish."""

import argparse
from pathlib import Path

from benchmarks.faults.trial import Found
from benchmarks.machine import describe

__all__ = ["add_command", "render", "run_faults", "share_out"]

_SHARES = {"save": 0.35, "checkpoints": 0.23, "streaming": 0.20, "predict": 0.20, "ray": 0.02}
_MOST_SHOWN = 10
_HOW = """\
Each operation runs in a process of its own and is killed: one time in two by the clock, at a
random moment of its run; else right after a random call of the file system, or while a file grows beyond a random byte.
Then every file must be the older one, bit for bit, or the whole new one (or a checkpoint that can be read); the next
run must finish, remove temporary files, and leave the files of an undisturbed run, bit for bit. Workers of a Ray fit
are killed in random epochs; the fit must give the same model."""


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to a command line."""
    parser = commands.add_parser("faults", help="kill operations and look for what is lost", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="number of kills of all subjects together")
    parser.add_argument("--subjects", default=",".join(_SHARES), help="comma-separated names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/faults.md"), help="the page to write")
    parser.set_defaults(run=run_faults)


def run_faults(given: argparse.Namespace) -> None:
    """Kill every subject, and also a careless one whose losses must be found, and write the page."""
    from benchmarks.faults.subjects import SUBJECTS, Careless
    from benchmarks.faults.trial import attack

    found = []
    for name, n_kills in share_out(given.kills, given.subjects.split(",")).items():
        if name == "ray":
            from benchmarks.faults.workers import attack_workers

            found.append(attack_workers(n_kills=n_kills, seed=given.seed))
        else:
            found.append(attack(SUBJECTS[name](), n_kills=n_kills, seed=given.seed))
        print(f"{found[-1].name:<24} {found[-1].n_kills:4} kills, {len(found[-1].losses)} losses", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(render(found, attack(Careless(), n_kills=20, seed=given.seed)))
    print(f"wrote {given.out}")
    if any(one.losses for one in found):
        raise SystemExit(1)


def share_out(n_kills: int, names: list[str]) -> dict[str, int]:
    """Return the number of kills of each subject. The first one also gets the remainder."""
    unknown = sorted(set(names) - set(_SHARES))
    if unknown:
        raise SystemExit(f"Subjects must be some of {sorted(_SHARES)}; got {unknown}.")
    total = sum(_SHARES[name] for name in names)
    counts = {name: int(n_kills * _SHARES[name] / total) for name in names}
    counts[names[0]] += n_kills - sum(counts.values())
    return counts


def render(found: list[Found], careless: Found) -> str:
    """Return the page."""
    rows = [
        f"| {one.name} | {one.n_kills} | {one.n_left_over} | {len(one.losses)} | {one.seconds:.2f} |" for one in found
    ]
    losses = [f"- {one.name}: {loss}" for one in found for loss in one.losses[:_MOST_SHOWN]]
    n_kills, n_losses = sum(one.n_kills for one in found), sum(len(one.losses) for one in found)
    lines = [
        "# Faults\n",
        f"**{n_kills} kills, {n_losses} losses.** {_HOW}\n",
        "| operation | kills | left a temporary file | losses | an undisturbed run, s |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *losses,
        *([""] if losses else []),
        f"The trial can fail: a writer that opens the final name directly loses its file in {len(careless.losses)} of",
        f"{careless.n_kills} kills.\n",
        f"{describe()}. Made by `python -m benchmarks faults`.",
    ]
    return "\n".join(lines) + "\n"
