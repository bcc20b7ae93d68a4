/** What would have to change in rows of the page for a target to be reached: sentences that came with the page. */

import { h } from "./dom.ts";
import { whole } from "./format.ts";
import type { RecoursePayload } from "./payload.ts";
import type { State } from "./state.ts";

/** Return a sentence in which a percent sign stays with its number. */
function together(sentence: string): string {
  return sentence.replaceAll(" %", "\u00a0%");
}

/** Return the section. */
export function recourseSection(state: State, found: RecoursePayload): HTMLElement {
  const { number } = state.model.payload.rows;
  const already = found.nReached ? ` ${whole(found.nReached)} of the rows before them reach it as they are.` : "";
  const lead = found.rows.length
    ? `The target: ${found.target}. Below are the cheapest changes for the first ${whole(found.rows.length)} rows that do not reach it.${already} A change of a number costs the share of the training rows between the old and the new value.`
    : `All rows that were looked at reach the target: ${found.target}.`;
  return h(
    "section",
    { id: "recourse", "aria-labelledby": "recourse-title" },
    h("h2", { id: "recourse-title" }, "What would have to change"),
    h("p", { class: "lead" }, lead),
    ...found.rows.map((one) =>
      h(
        "details",
        { class: "recourse", open: one === found.rows[0] },
        h("summary", {}, h("b", {}, `Row ${number[one.row]}`), ` ${together(one.now)}`),
        one.ways.length > 0 && h("ul", {}, ...one.ways.map((way) => h("li", {}, h("bdi", {}, together(way))))),
        h("p", { class: "quiet-text" }, one.proof),
      ),
    ),
  );
}
