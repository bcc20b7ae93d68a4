/** Rows: browse them, sort them by error, and take one into "what if". */

import { h, name, put, shorten } from "./dom.ts";
import { inverseLink } from "./evaluate.ts";
import { number, percent, valueText, whole } from "./format.ts";
import { rowValues } from "./model.ts";
import type { State } from "./state.ts";

const PAGE = 15;
const COLUMNS = 5;

type Key = "row" | "truth" | "prediction" | "error" | number;

/** What a carried row has in store. */
export interface RowResult {
  row: number;
  truth: number | null;
  /** Prediction of the output; of a classifier the most probable class. */
  prediction: number;
  /** Size of the error; of a classifier one minus the probability of the truth. */
  error: number | null;
}

/** Return prediction and error of every carried row. */
export function resultsOf(state: State): RowResult[] {
  const { payload } = state.model;
  const { rows, classes, link } = payload;
  return rows.number.map((_, row) => {
    const mean = inverseLink(link, Float64Array.from(rows.score[row]));
    const truth = rows.target.length ? rows.target[classes.length ? 0 : state.output][row] : null;
    if (!classes.length) {
      const prediction = mean[state.output];
      return { row, truth, prediction, error: truth === null ? null : prediction - truth };
    }
    const chances = link === "logit" ? [1 - mean[0], mean[0]] : Array.from(mean);
    const prediction = chances.indexOf(Math.max(...chances));
    return { row, truth, prediction, error: truth === null ? null : 1 - chances[truth] };
  });
}

export class RowSection {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly head = h("tr");
  private readonly place = h("span", { class: "quiet-text", role: "status" });
  private readonly back = h("button", { type: "button" }, "Previous");
  private readonly next = h("button", { type: "button" }, "Next");
  private key: Key = "row";
  private isDescending = false;
  private page = 0;

  constructor(private readonly state: State) {
    const { rows } = state.model.payload;
    if (rows.target.length) {
      this.key = "error";
      this.isDescending = true;
    }
    this.back.addEventListener("click", () => this.turn(-1));
    this.next.addEventListener("click", () => this.turn(1));
    state.on("output", () => this.draw());
    const n = rows.number.length;
    const note =
      n === 0
        ? "This report contains no rows."
        : `${n < rows.nTotal ? `${whole(n)} of the ${whole(rows.nTotal)}` : `All ${whole(n)}`} rows this report was made from. They are numbered as in their file or table, starting at 1. Pick one to see how its prediction is made up.`;
    this.element = h(
      "section",
      { id: "rows", "aria-labelledby": "rows-title" },
      h("h2", { id: "rows-title" }, "Rows"),
      h("p", { class: "lead" }, note),
      n > 0 &&
        h(
          "div",
          { class: "table-box", tabindex: 0, role: "region", "aria-label": "Rows of the table" },
          h("table", {}, h("thead", {}, this.head), this.body),
        ),
      n > 0 && h("div", { class: "toolbar pager" }, this.back, this.place, this.next),
    );
    this.draw();
  }

  private turn(step: number): void {
    this.page += step;
    this.draw();
  }

  private sortBy(key: Key): void {
    this.isDescending = this.key === key ? !this.isDescending : key === "error";
    this.key = key;
    this.page = 0;
    this.draw();
  }

  private sorted(): RowResult[] {
    const results = resultsOf(this.state);
    const { model } = this.state;
    const measure = (result: RowResult): number | string | null => {
      if (this.key === "row") return result.row;
      if (this.key === "truth") return result.truth;
      if (this.key === "prediction") return result.prediction;
      if (this.key === "error") return result.error === null ? null : Math.abs(result.error);
      return rowValues(model, result.row)[this.key];
    };
    const sign = this.isDescending ? -1 : 1;
    return results.sort((a, b) => {
      const [x, y] = [measure(a), measure(b)];
      if (x === null || y === null) return x === y ? a.row - b.row : x === null ? 1 : -1;
      const order = typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y;
      return sign * order || a.row - b.row;
    });
  }

  private draw(): void {
    const { payload, features } = this.state.model;
    const results = this.sorted();
    const pages = Math.max(1, Math.ceil(results.length / PAGE));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const shown = this.state.ranked().slice(0, COLUMNS);
    const hasTruth = payload.target.length > 0 && payload.rows.target.length > 0;
    const isClass = payload.classes.length > 0;
    const columns: [Key, string][] = [
      ["row", "row"],
      ...(hasTruth ? [["truth", "truth"] as [Key, string]] : []),
      ["prediction", "prediction"],
      ...(hasTruth ? [["error", isClass ? "chance of being wrong" : "error"] as [Key, string]] : []),
      ...shown.map((feature): [Key, string] => [feature.at, feature.name]),
    ];
    put(this.head, ...columns.map(([key, text]) => this.header(key, text)));
    const target = (value: number | null) =>
      value === null ? "–" : isClass ? shorten(payload.classes[value], 30) : number(value, 5);
    put(
      this.body,
      ...results.slice(this.page * PAGE, (this.page + 1) * PAGE).map((result) => {
        const values = rowValues(this.state.model, result.row);
        const error = result.error === null ? "–" : isClass ? percent(result.error, 1) : number(result.error, 4);
        return h(
          "tr",
          { onclick: () => this.open(result.row) },
          h(
            "td",
            {},
            h(
              "button",
              { type: "button", class: "row-button" },
              String(payload.rows.number[result.row]),
              h("span", { "aria-hidden": "true" }, " →"),
              h("span", { class: "sr" }, " into what if"),
            ),
          ),
          hasTruth && h("td", {}, h("bdi", {}, target(result.truth))),
          h("td", {}, h("bdi", {}, target(result.prediction))),
          hasTruth && h("td", { class: "strong" }, error),
          ...shown.map((feature) =>
            h("td", {}, h("bdi", {}, shorten(valueText(features[feature.at], values[feature.at]), 28))),
          ),
        );
      }),
    );
    this.place.textContent = `page ${whole(this.page + 1)} of ${whole(pages)}`;
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page === pages - 1;
  }

  private header(key: Key, text: string): HTMLElement {
    const isSorted = this.key === key;
    const order = this.isDescending ? "descending" : "ascending";
    return h(
      "th",
      { scope: "col", "aria-sort": isSorted ? order : "none" },
      h(
        "button",
        { type: "button", "data-key": `sort-${key}`, onclick: () => this.sortBy(key) },
        name(shorten(text, 24)),
        h("span", { "aria-hidden": "true" }, isSorted ? (this.isDescending ? " ↓" : " ↑") : ""),
      ),
    );
  }

  private open(row: number): void {
    this.state.load(row);
    const section = document.getElementById("what-if");
    section?.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    document.getElementById("what-start")?.focus({ preventScroll: true });
  }
}
