"use strict";

// A link to an equation, a theorem, a figure, a citation, a claim, a term of the glossary or a section of the
// background page shows what it leads to, when the pointer rests on it or the keyboard reaches it; a finger follows
// the link. The box is Bootstrap's, which the theme loads.
const LINKS = "article.bd-article a[href*='#']:not(.headerlink)";
const TARGETS = "div.math, .proof, figure, .citation, .claim, dl.glossary > dt, section";
const SECTIONS_OF = /\/primer\.html$/; // of other pages, sections have no previews
const pages = new Map([[location.pathname, document]]);
let wanted = null, shown = null, timer, turn = 0;

// The page at an address, asked for once; none where it cannot be had, as from a folder of files.
function pageAt(path) {
  const read = (text) => new DOMParser().parseFromString(text, "text/html");
  if (!pages.has(path) && location.protocol !== "file:")
    pages.set(path, fetch(path).then((answer) => answer.text()).then(read, () => null));
  return pages.get(path);
}

// What is shown of a target: a term with its definition, a section up to its second paragraph.
function shownOf(target) {
  const copy = document.createElement(target.matches("dt") ? "dl" : "div");
  let parts = [target];
  if (target.matches("dt")) {
    let definition = target;
    while (definition.matches("dt")) definition = definition.nextElementSibling; // a term may have several names
    parts.push(definition);
  } else if (target.matches("section")) {
    parts = [...target.children].filter((child) => !child.matches("span"));
    const next = parts.findIndex((part, k) => k > 1 && !part.matches("div.math"));
    if (next > 0) parts.length = next;
  }
  copy.append(...parts.map((part) => part.cloneNode(true)));
  return copy;
}

async function copyOf(link) {
  const url = new URL(link.href);
  if (url.host !== location.host) return null;
  let target = (await pageAt(url.pathname))?.getElementById(decodeURIComponent(url.hash.slice(1)));
  if (target?.matches("section > span")) target = target.parentElement; // a label before its heading
  if (!target?.matches(TARGETS)) return null;
  if (target.matches("section") && !SECTIONS_OF.test(url.pathname)) return null;
  const copy = shownOf(target);
  if (target.matches(".claim")) copy.className = target.className; // of which the line is shown
  if (target.matches(".claim")) copy.replaceChildren(...copy.querySelector("summary").children);
  for (const node of copy.querySelectorAll(".headerlink, .explorer-ui, script")) node.remove();
  for (const name of ["id", "role"]) // a role of an entry of a list, say
    for (const node of copy.querySelectorAll(`[${name}]`)) node.removeAttribute(name);
  for (const name of ["src", "href"])
    for (const node of copy.querySelectorAll(`[${name}]`)) node.setAttribute(name, new URL(node.getAttribute(name), url));
  return copy;
}

function hide() {
  shown?.hide();
  shown?.dispose();
  wanted = shown = null;
  turn += 1;
}

async function show(link) {
  hide();
  wanted = link;
  const mine = turn; // of which there are two where the reader comes back before the page does
  const copy = link && (await copyOf(link));
  if (!copy || mine !== turn) return;
  link.removeAttribute("title"); // which the browser would show beside it
  const look = { customClass: "preview bd-article", placement: "top", fallbackPlacements: ["bottom"], animation: false };
  const box = new bootstrap.Popover(link, { ...look, content: copy, html: true, trigger: "manual" });
  shown = box;
  box.show();
  const formulas = [...copy.querySelectorAll(".math:not(:has(mjx-container))")];
  if (!formulas.length || !window.MathJax?.typesetPromise) return;
  await MathJax.typesetPromise(formulas);
  if (box === shown) box.update();
}

// What was shown for the keyboard stays until it goes on, wherever the pointer lies.
function want(link, delay) {
  clearTimeout(timer);
  if (link === wanted || (!link && wanted?.matches(":focus-visible"))) return;
  timer = setTimeout(show, delay, link);
}
document.addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch") return;
  if (event.target.closest(".preview")) clearTimeout(timer);
  else want(event.target.closest(LINKS), 250);
});
document.addEventListener("focusin", (event) => {
  const link = event.target.closest(LINKS);
  want(link?.matches(":focus-visible") ? link : null, 0);
});
document.addEventListener("focusout", () => want(null, 0));
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
window.addEventListener("hashchange", hide);
