// Helpers that put data on the page, always as text and never as markup.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAttributes(node, attributes);
  node.append(...children);
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(node, attributes);
  node.append(...children);
  return node;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
}

export function byId(id) {
  return document.getElementById(id);
}

/** Write only changed text, so that a selection survives the next update. */
export function write(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

/** Write into the element of this data-testid. */
export function writeTo(testid, words) {
  write(document.querySelector(`[data-testid="${testid}"]`), words);
}

/** Show the items in order, one node each. A node stays with its key, so bars move instead of being replaced. */
export function showEach(container, items, keyOf, create, update) {
  const old = new Map([...container.children].map((node) => [node.key, node]));
  items.forEach((item, index) => {
    const key = keyOf(item);
    let node = old.get(key);
    if (!node) {
      node = create(item);
      node.key = key;
    }
    old.delete(key);
    update(node, item, index);
    if (container.children[index] !== node) container.insertBefore(node, container.children[index] ?? null);
  });
  for (const node of old.values()) node.remove();
}

/** Find a part of a row made by `create`. */
export function part(node, name) {
  return node.querySelector(`[data-part="${name}"]`);
}
