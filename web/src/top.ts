/** The top: what is predicted, how well, and how much of it is simple. */

import { type Child, h, name, put, s } from "./dom.ts";
import { number, percent, sharePercent, whole } from "./format.ts";
import { resultsOf } from "./rows.ts";
import { linear, ticks } from "./scales.ts";
import type { State } from "./state.ts";

function tile(value: string, label: Child[], note: Child[], className = ""): HTMLElement {
  return h(
    "div",
    { class: `tile ${className}` },
    h("p", { class: "tile-value" }, value),
    h("p", { class: "tile-label" }, ...label),
    h("p", { class: "tile-note" }, ...note),
  );
}

export class TopSection {
  readonly element: HTMLElement;
  private readonly tiles = h("div", { class: "tiles" });
  private readonly figure = h("div", { class: "fit" });

  constructor(private readonly state: State) {
    const { payload, nFeatures } = state.model;
    const kinds = payload.classes.length
      ? payload.classes.length === 2
        ? [" (", name(payload.classes[0]), " or ", name(payload.classes[1]), ")"]
        : [` (${whole(payload.classes.length)} classes)`]
      : [];
    const nRows = payload.training.nRows;
    this.element = h(
      "section",
      { id: "top", class: "top", "aria-labelledby": "page-title" },
      h("p", { class: "kicker" }, "Model report"),
      h("h1", { id: "page-title" }, name(payload.title)),
      h(
        "p",
        { class: "lead" },
        "This model predicts ",
        h("b", {}, name(payload.target)),
        ...kinds,
        ` from ${whole(nFeatures)} feature${nFeatures > 1 ? "s" : ""}`,
        nRows ? `. It learned from ${whole(nRows)} rows. ` : ". ",
        "Every prediction is a sum: the score of an average row, plus one contribution per feature. ",
        "The whole model is inside this page, and nothing you enter leaves it.",
      ),
      this.reduction(),
      payload.offsetNote ? h("p", { class: "notice", role: "note" }, payload.offsetNote) : null,
      h("div", { class: "top-grid" }, this.tiles, this.figure),
    );
    state.on("output", () => this.draw());
    this.draw();
  }

  private draw(): void {
    put(this.tiles, ...this.qualityTiles(), this.additivityTile(), this.contextTile());
    put(this.figure, this.fit());
  }

  private reduction(): HTMLElement | null {
    const { reduction, classes, link } = this.state.model.payload;
    if (!reduction) return null;
    const members =
      reduction.members < reduction.ofMembers
        ? `${reduction.members} of its ${reduction.ofMembers} members`
        : "all of its members";
    const knots = reduction.knotStride > 1 ? `, one in ${reduction.knotStride} knots` : "";
    const isChance = classes.length > 0 || link === "logit";
    const size = isChance
      ? `${percent(reduction.largestPredictionDifference, 2)} of probability`
      : number(reduction.largestPredictionDifference, 3);
    return h(
      "p",
      { class: "notice", role: "note" },
      h("b", {}, "This page carries a smaller copy of the model: "),
      `${members}${knots}, with 16 bits per number. On ${whole(reduction.nRows)} rows, its predictions differ from those of the model by at most ${size}.`,
    );
  }

  private qualityTiles(): HTMLElement[] {
    const { quality } = this.state.model.payload;
    if (!quality) {
      return [
        tile(
          "–",
          ["quality"],
          ["The rows of this report have no actual values, so the quality could not be measured."],
        ),
      ];
    }
    return quality.scores.slice(0, 2).map((score, at) => {
      const [value, rule] = [number(score.model, 4), number(score.baseline, 4)];
      const gain = 1 - score.model / score.baseline;
      const isShare = score.better === "lower" && score.baseline > 0; // nothing is a share of nothing
      const size = percent(Math.abs(gain), Math.abs(gain) < 0.01 ? 2 : 0);
      const words =
        value === rule
          ? "the same as"
          : isShare
            ? `${size} ${gain > 0 ? "lower" : "higher"} than`
            : score.model > score.baseline
              ? "above"
              : "below";
      const spread = score.interval
        ? ` Of 100 samples with as many rows, 95 lie between ${number(score.interval[0], 4)} and ${number(score.interval[1], 4)}.`
        : "";
      const rows = at === 0 ? ` Measured on ${whole(quality.nRows)} rows given to this report.` : "";
      return tile(value, [score.name], [`${words} the ${rule} of ${quality.baseline}.${spread}${rows}`]);
    });
  }

  private additivityTile(): HTMLElement {
    const { state } = this;
    const best = state.ranked()[0];
    const own = state.additivity(best);
    const rest = own > 0.995 ? " depends on nothing else." : " does not depend on anything else.";
    return tile(
      sharePercent(own),
      ["on its own: ", name(best.name)],
      [`${sharePercent(own)} of what the model says about `, name(best.name), ", its most important feature,", rest],
      "wide",
    );
  }

  private contextTile(): HTMLElement {
    const { state } = this;
    const { additiveVariance, scoreVariance } = state.model.tables;
    const share = additiveVariance[state.output] / (scoreVariance[state.output] || 1);
    const words =
      share < 1e-9
        ? "This is an additive model: no feature changes the effect of another one."
        : `Of all differences between predictions, ${sharePercent(share)} come from interactions between features; ${sharePercent(1 - share)} can be read one feature at a time.`;
    return tile(sharePercent(share), ["interaction share"], [words], "wide");
  }

  private fit(): HTMLElement | null {
    const results = resultsOf(this.state).filter((result) => result.truth !== null);
    if (results.length < 2) return null;
    const { classes } = this.state.model.payload;
    if (classes.length > 2) return this.classBars(results);
    return classes.length ? this.chances() : this.scatter(results);
  }

  private scatter(results: ReturnType<typeof resultsOf>): HTMLElement {
    const size = 300;
    const pad = { left: 50, bottom: 40, top: 8, right: 8 };
    const all = results.flatMap((result) => [result.truth ?? 0, result.prediction]);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    const room = (high - low || 1) * 0.03;
    low -= room;
    high += room;
    const x = linear([low, high], [pad.left, size - pad.right]);
    const y = linear([low, high], [size - pad.bottom, pad.top]);
    const svg = s("svg", {
      viewBox: `0 0 ${size} ${size}`,
      class: "scatter",
      role: "img",
      "aria-label": `Predicted against actual values of ${whole(results.length)} rows`,
    });
    const anchor = (at: number) => (at > size - 24 ? "end" : "middle"); // not over the edge
    for (const value of ticks([low, high], 7)) {
      svg.append(
        s("line", { class: "grid", x1: pad.left, x2: size - pad.right, y1: y(value), y2: y(value) }),
        s("text", { x: pad.left - 6, y: y(value) + 3.5, "text-anchor": "end" }, number(value, 3)),
        s("text", { x: x(value), y: size - pad.bottom + 15, "text-anchor": anchor(x(value)) }, number(value, 3)),
      );
    }
    svg.append(s("line", { class: "diagonal", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
    for (const result of results)
      svg.append(s("circle", { class: "dot", cx: x(result.truth ?? 0), cy: y(result.prediction), r: 2.2 }));
    svg.append(
      s("text", { class: "axis-title", x: (pad.left + size) / 2, y: size - 6, "text-anchor": "middle" }, "truth"),
      s(
        "text",
        {
          class: "axis-title",
          transform: `translate(11 ${(size - pad.bottom) / 2}) rotate(-90)`,
          "text-anchor": "middle",
        },
        "prediction",
      ),
    );
    return h(
      "figure",
      {},
      svg,
      h("figcaption", {}, `${whole(results.length)} rows; on the line, predicted and actual values agree.`),
    );
  }

  /** Of two classes: how the predicted chances of the second spread, by truth. */
  private chances(): HTMLElement {
    const { payload } = this.state.model;
    const bins = [0, 1].map(() => new Array<number>(20).fill(0));
    payload.rows.score.forEach((score, row) => {
      const truth = payload.rows.target[0][row];
      if (truth === null) return;
      bins[truth][Math.min(19, Math.floor(20 / (1 + Math.exp(-score[0]))))]++;
    });
    const [width, tall] = [300, 110];
    const svg = s("svg", {
      viewBox: `0 0 ${width} ${2 * tall + 34}`,
      class: "scatter",
      role: "img",
      "aria-label": `Predicted probability of ${payload.classes[1]}, by actual class`,
    });
    bins.forEach((counts, at) => {
      const most = Math.max(...counts, 1);
      const bottom = (at + 1) * tall;
      counts.forEach((count, n) => {
        const high = (count / most) * (tall - 30);
        svg.append(
          s("rect", {
            class: at ? "bar up" : "bar down",
            x: 8 + n * 14.2,
            y: bottom - high,
            width: 13.2,
            height: high,
          }),
        );
      });
      svg.append(
        s("line", { class: "zero", x1: 8, x2: width - 8, y1: bottom, y2: bottom }),
        s("text", { class: "strong", x: 8, y: bottom - tall + 18 }, `actual: ${payload.classes[at].slice(0, 34)}`),
      );
    });
    for (const value of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(
        s(
          "text",
          { x: 8 + value * 284, y: 2 * tall + 14, "text-anchor": value ? (value === 1 ? "end" : "middle") : "start" },
          percent(value),
        ),
      );
    }
    return h(
      "figure",
      {},
      svg,
      h("figcaption", {}, "Predicted chance of ", name(payload.classes[1]), ", for rows of each class."),
    );
  }

  /** Of many classes: the share of rows of each that are predicted right. */
  private classBars(results: ReturnType<typeof resultsOf>): HTMLElement {
    const { classes } = this.state.model.payload;
    const counts = classes.map((_, c) => {
      const own = results.filter((result) => result.truth === c);
      return { c, n: own.length, right: own.filter((result) => result.prediction === c).length };
    });
    const list = h("ul", { class: "classes" });
    for (const { c, n, right } of counts.filter((count) => count.n).slice(0, 12)) {
      const fill = h("i");
      fill.style.width = `${(100 * right) / n}%`;
      list.append(
        h(
          "li",
          {},
          h("div", {}, name(classes[c]), h("span", { class: "class-bar" }, fill), h("b", {}, percent(right / n))),
        ),
      );
    }
    return h("figure", {}, list, h("figcaption", {}, "Share of the rows of each class that are predicted correctly."));
  }
}
