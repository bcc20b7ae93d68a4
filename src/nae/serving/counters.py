"""Counters of the server, in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable

__all__ = ["Counters", "escape", "head"]

_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Counters:
    """Counts of requests, rows and times. Only the event loop changes them, so there are no locks."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._rows: Counter[tuple[str, str]] = Counter()
        self._times: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(_BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count_request(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self._requests[path, method, status] += 1
        self._times[path][bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[path] += seconds

    def count_rows(self, model: str, work: str, n_rows: int) -> None:
        """Count the rows of one answered request."""
        self._rows[model, work] += n_rows

    def render(self, *, n_models: int, n_reloads: int, n_failures: int, more: Iterable[str] = ()) -> str:
        """Return all counters as text, and further lines."""
        lines = [
            *head("nae_requests_total", "counter", "Requests answered, by route and status."),
            *(
                f'nae_requests_total{{path="{escape(path)}",method="{escape(method)}",status="{status}"}} {n}'
                for (path, method, status), n in sorted(self._requests.items())
            ),
            *head("nae_rows_total", "counter", "Rows predicted or explained, by model."),
            *(
                f'nae_rows_total{{model="{escape(model)}",work="{work}"}} {n}'
                for (model, work), n in sorted(self._rows.items())
            ),
            *head(
                "nae_request_seconds", "histogram", "Time from the first byte of a request to the last of the answer."
            ),
            *self._histogram(),
        ]
        for name, kind, text, value in (
            ("nae_requests_in_flight", "gauge", "Requests being answered.", self.in_flight),
            ("nae_models", "gauge", "Models in service.", n_models),
            ("nae_reloads_total", "counter", "Times that changed files were taken into service.", n_reloads),
            ("nae_reload_failures_total", "counter", "Changed files that could not be read.", n_failures),
        ):
            lines += [*head(name, kind, text), f"{name} {value}"]
        return "\n".join([*lines, *more]) + "\n"

    def _histogram(self) -> list[str]:
        lines = []
        for path, counts in sorted(self._times.items()):
            total, label = 0, f'path="{escape(path)}"'
            for bound, count in zip((*_BUCKETS, "+Inf"), counts, strict=True):
                total += count
                lines.append(f'nae_request_seconds_bucket{{{label},le="{bound}"}} {total}')
            lines.append(f"nae_request_seconds_sum{{{label}}} {self._seconds[path]:.6f}")
            lines.append(f"nae_request_seconds_count{{{label}}} {total}")
        return lines


def head(name: str, kind: str, text: str) -> list[str]:
    """Return the lines that introduce a metric."""
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def escape(value: str) -> str:
    """Return the value of a label as it is written between quotes."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
