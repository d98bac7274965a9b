// Commands that ask for a decision and report its outcome, ready to paste into a terminal.

import { byId, write, writeTo } from "/static/dom.js";
import { hasKey, pathOf } from "/static/server.js";

export function showCommands(experiment) {
  const { name } = experiment;
  const key = hasKey() ? ` -H "Authorization: Bearer $BELATED_KEY"` : "";
  const post = (path) => `curl -X POST ${quoted(location.origin + path)}${key}`;
  const sent = (path, body) => `${post(path)} \\\n  -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`;
  const outcome = example(experiment);
  const decisions = `${pathOf(name)}/decisions`;
  write(byId("decide"), post(decisions));
  write(byId("decide-subject"), sent(decisions, { subject: "USER_ID" }));
  write(byId("report"), sent("/v1/decisions/DECISION_ID/feedback", outcome));
  write(byId("report-subject"), sent(`${pathOf(name)}/feedback`, { subject: "USER_ID", ...outcome }));
  writeTo("report-hint", hint(experiment));
}

/** The best outcome, as a report takes it. */
function example({ outcome, parts, several }) {
  const best = ({ better, highest, lowest }) => (better === "higher" ? highest : lowest);
  const named = several === null ? {} : { report_id: "ORDER_ID" };
  const names = Object.keys(parts ?? {});
  if (names.length > 0) return { parts: Object.fromEntries(names.map((part) => [part, best(parts[part])])) };
  return outcome.better === "higher" ? { reward: best(outcome), ...named } : { loss: best(outcome), ...named };
}

function hint({ parts, several }) {
  const id = "Replace DECISION_ID with the id";
  if (Object.keys(parts ?? {}).length > 0) return `${id}, and the numbers with the parts of the outcome. Leave out those that come later, and send them then.`;
  if (several === null) return `${id}, and the number with the outcome.`;
  return `${id}, the number with the outcome, and ORDER_ID with your own id of it, so that a retry does not count twice.`;
}

/** Quote for a shell. A name may contain anything, even a quote. */
function quoted(words) {
  return `'${words.replaceAll("'", "'\\''")}'`;
}

export function prepareCopying() {
  for (const button of document.querySelectorAll("[data-copies]")) {
    button.hidden = !navigator.clipboard; // browsers offer it only on secure origins
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(byId(button.dataset.copies).textContent);
      write(button, "Copied");
      setTimeout(() => write(button, "Copy"), 2000);
    });
  }
}
