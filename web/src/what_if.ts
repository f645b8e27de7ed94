/** What would change the answer, as the letter tells it: the search of `counterfactual/`, asked for the other outcome. */
import { Counterfactuals, readPreparedSearch } from "./counterfactual";
import type { Search } from "./engine";
import { valueOf, type AnswerFacts } from "./letter";
import type { Pane } from "./rows";

const ANSWERS = 3;

/** The search that Python prepared for this pane and model. */
export async function searchOf(content: Uint8Array, pane: Pane): Promise<Search> {
  const { schema } = pane;
  const prepared = await readPreparedSearch(content, schema);
  const { labels } = prepared.classes;
  return async (row, predict) => {
    const found = await new Counterfactuals(schema, prepared, predict).find(row, { total: ANSWERS });
    const answers = found.answers.map(
      ({ output, row: other }): AnswerFacts => ({
        output,
        changes: schema.columns.flatMap((column, j): AnswerFacts["changes"] =>
          other[j] === row[j] ? [] : [[column.name, valueOf(column, row[j]), valueOf(column, other[j])]],
        ),
      }),
    );
    return { found: labels[found.current], wanted: labels[found.wanted], answers };
  };
}
