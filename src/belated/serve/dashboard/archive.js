// What has left the store, in words.

import { byId, writeTo } from "/static/dom.js";
import { count, moment, plural } from "/static/words.js";

export function showArchive({ archive, decisions, removed }) {
  const missing = archive?.missing ?? 0;
  byId("archive").hidden = missing === 0 && removed === 0;
  writeTo("archive-words", missing === 0 ? `${plural(removed, "decision has", "decisions have")} left the store.` : goneWords(archive, decisions));
  writeTo("archive-left", leftWords(archive, missing, removed));
  writeTo("export-scope", missing + removed === 0 ? "all decisions and outcomes" : "the decisions that are left, and their outcomes,");
  writeTo("store-removed", archive === null ? "" : `Decisions made until ${moment(archive.until)} may have been archived or erased.`);
}

function goneWords({ missing, oldest }, decisions) {
  if (oldest === null) return decisions === 1 ? "The only decision is no longer in the store." : `None of the ${count(decisions)} decisions is in the store any more.`;
  return `The first ${missing === 1 ? "decision is" : `${count(missing)} decisions are`} no longer in the store. The oldest that is left was made ${moment(oldest)}.`;
}

function leftWords(archive, missing, removed) {
  const read = missing > 0 && archive.oldest === null ? "There is nothing left to list or to download here." : "Lists and downloads have the decisions that are left.";
  const open = removed === 0 ? "" : ` ${plural(removed, "decision")} had no outcome, and can no longer be reported.`;
  return `They were archived or erased. All numbers and charts on this page still count them. ${read}${open}`;
}
