// Commands that ask for a decision and report its outcome, ready to paste into a terminal.

import { byId, write } from "/static/dom.js";
import { hasKey, pathOf } from "/static/server.js";

export function showCommands({ name, outcome }) {
  const good = outcome.better === "higher" ? outcome.highest : outcome.lowest;
  const key = hasKey() ? ` -H "Authorization: Bearer $BELATED_KEY"` : "";
  const address = (path) => quoted(location.origin + path);
  write(byId("decide"), `curl -X POST ${address(`${pathOf(name)}/decisions`)}${key}`);
  const body = quoted(JSON.stringify(outcome.better === "higher" ? { reward: good } : { loss: good }));
  write(
    byId("report"),
    `curl -X POST ${address("/v1/decisions/DECISION_ID/feedback")}${key} \\\n  -H 'Content-Type: application/json' -d ${body}`,
  );
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
