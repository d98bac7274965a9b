// Applies a JSON Patch (RFC 6902) with the operations add, replace and remove. A pure function.

/** The document after the patch. Shares with the old one what has not changed, and leaves the old one as it was. */
export function patched(document, operations) {
  return operations.reduce((result, { op, path, value }) => (path === "" ? value : changed(result, path.slice(1).split("/").map(unescaped), op, value)), document);
}

const unescaped = (key) => key.replaceAll("~1", "/").replaceAll("~0", "~");

function changed(node, [key, ...rest], op, value) {
  const copy = Array.isArray(node) ? [...node] : { ...node };
  if (rest.length > 0) copy[key] = changed(node[key], rest, op, value);
  else if (op === "remove") remove(copy, key);
  else if (op === "add" && Array.isArray(copy)) copy.splice(key === "-" ? copy.length : Number(key), 0, value);
  else copy[key] = value;
  return copy;
}

function remove(copy, key) {
  if (Array.isArray(copy)) copy.splice(Number(key), 1);
  else delete copy[key];
}
