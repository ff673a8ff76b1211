// Elements, never markup: names and reasons come from outside.
const drawn = new Set(["svg", "polyline"]);

/// An element. Attributes that are null or false are left out; parts are nodes, texts, and lists of both.
export function make(tag, attributes, ...parts) {
  const node = drawn.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value != null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...parts.flat(9).filter(part => part != null && part !== false));
  return node;
}

/// Makes the children of a node equal to new ones, and keeps the nodes that stay: focus, selection and scroll positions survive.
/// Nodes with `data-key` are found again when they move.
export function morph(parent, fresh) {
  const keyed = new Map([...parent.children].filter(node => node.dataset.key).map(node => [node.dataset.key, node]));
  let at = parent.firstChild;
  for (const next of fresh) {
    const key = next.dataset?.key;
    let old = key ? keyed.get(key) : at?.dataset?.key ? null : at;
    keyed.delete(key);
    if (old && old.nodeName !== next.nodeName) old = null;
    if (!old) {
      parent.insertBefore(next, at);
      continue;
    }
    while (at !== old) {
      const following = at.nextSibling;
      parent.append(at);
      at = following;
    }
    at = at.nextSibling;
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
      continue;
    }
    for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && name !== "open" && name !== "tabindex") old.removeAttribute(name);
    for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    morph(old, [...next.childNodes]);
  }
  while (at) {
    const following = at.nextSibling;
    at.remove();
    at = following;
  }
}

/// A table; `columns` are [heading, class], rows are [key, ...cells].
export function table(caption, columns, rows, none) {
  if (!rows.length) return make("p", { class: "note" }, none);
  return make("table", {}, make("caption", { class: "hidden" }, caption),
    make("thead", {}, make("tr", {}, columns.map(([name, kind]) => make("th", { scope: "col", class: kind }, name)))),
    make("tbody", {}, rows.map(([key, ...cells]) => make("tr", { "data-key": key },
      cells.map((cell, i) => make("td", { class: columns[i][1], "data-label": columns[i][0] }, cell))))));
}

export const number = value => value == null ? "–" : Math.round(value).toLocaleString("en");
export const rate = value => value == null ? "–" : value < 10 ? value.toFixed(1) : number(value);
export const time = text => text ? new Date(text).toLocaleString("sv") : "";

export function duration(seconds) {
  if (seconds == null) return "";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
  return `${Math.max(0, Math.round(seconds))} s`;
}

/// A line over the last values.
export function spark(values) {
  const most = Math.max(...values, 1), step = 100 / Math.max(values.length - 1, 1);
  return make("svg", { viewBox: "0 0 100 26", preserveAspectRatio: "none", "aria-hidden": "true" },
    make("polyline", { points: values.map((value, i) => `${(i * step).toFixed(1)},${(25 - 24 * value / most).toFixed(1)}`).join(" ") }));
}

/// Text with code, strong words, and links to sections of the runbook.
export function inline(words) {
  return words.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map(part => {
    const [, name, target] = part.match(/^\[([^\]]+)\]\(([^)]+)\)$/) || [];
    if (name) return target.startsWith("#") ? make("a", { href: "#/runbook/" + target.slice(1) }, name.replaceAll("`", "")) : name.replaceAll("`", "");
    return /^`.+`$/.test(part) ? make("code", {}, part.slice(1, -1)) : /^\*\*/.test(part) ? make("strong", {}, part.slice(2, -2)) : part;
  });
}

/// Markdown as the runbook has it: headings, paragraphs, lists, tables, code and links.
export function markdown(text) {
  const cells = line => line.slice(1, -1).split(/(?<!\\)\|/).map(cell => cell.trim().replaceAll("\\|", "|"));
  return text.split(/(^```[\s\S]*?^```$)|\n{2,}|(?<=^#.*)\n|\n(?=```)/m).filter(part => part?.trim()).map(part => {
    const lines = part.trim().split("\n"), heading = lines[0].match(/^(#+) (.*)/);
    if (lines[0].startsWith("```")) return make("pre", { tabindex: "0" }, make("code", {}, lines.slice(1, -1).join("\n")));
    if (heading) return make("h" + heading[1].length, { id: "runbook-" + slug(heading[2]), tabindex: "-1" }, heading[2]);
    if (lines[0].startsWith("|")) return table("", cells(lines[0]).map(name => [name, "wide"]), lines.slice(2).map(line => [null, ...cells(line).map(inline)]), "");
    if (/^(- |\d+\. )/.test(lines[0])) return make("ul", {}, part.trim().split(/\n(?=- |\d+\. )/).map(item => make("li", {}, inline(item.replace(/^(- |\d+\. )/, "")))));
    return make("p", {}, inline(lines.join(" ")));
  });
}
const slug = heading => heading.toLowerCase().replace(/[^a-z0-9 -]/g, "").replaceAll(" ", "-");
