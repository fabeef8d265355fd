"use strict";

// Boxes that scroll sideways: the classes more-left and more-right fade the edge behind which there is more
// (book.css), and the keyboard reaches the box. On a telephone a table that would scroll is smaller (class tight).
const TABLES = ".output, .pst-scrollable-table-container";
const BOXES = [
  "mjx-container[display]",
  "span.math",
  "pre",
  ".output",
  ".pst-scrollable-table-container",
  ".claim",
  ".explorer-scroll",
].map((box) => `.bd-article ${box}`).join(", ");

function cue(box) {
  const hidden = box.scrollWidth - box.clientWidth;
  box.classList.toggle("more-left", hidden > 2 && box.scrollLeft > 2);
  box.classList.toggle("more-right", hidden > 2 && box.scrollLeft < hidden - 2);
  if (hidden > 2) box.tabIndex = 0;
}

function fit(box) {
  if (box.matches(TABLES)) {
    box.classList.remove("tight");
    box.classList.toggle("tight", box.scrollWidth > box.clientWidth + 2);
  }
  cue(box);
}

async function cues() {
  if (window.MathJax?.startup) await MathJax.startup.promise;
  const resized = new ResizeObserver((entries) => entries.forEach((entry) => fit(entry.target.closest(BOXES))));
  for (const box of document.querySelectorAll(BOXES)) {
    box.addEventListener("scroll", () => cue(box), { passive: true });
    resized.observe(box);
    if (box.firstElementChild) resized.observe(box.firstElementChild);
  }
}

// A full stop after a formula does not begin the next line.
for (const formula of document.querySelectorAll(".bd-article span.math")) {
  const next = formula.nextSibling;
  const mark = next?.nodeType === Node.TEXT_NODE && next.data.match(/^[.,;:?!)\]]+/)?.[0];
  if (!mark) continue;
  formula.append(mark);
  next.data = next.data.slice(mark.length);
}

// The search: a word inside a longer one ("incidence" in "coincidence") counts little, and what is shown of
// a page has no formulas, which would be raw TeX.
function search() {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const word = new RegExp(`(^|\\W)${_escapeRegExp(query.toLowerCase().trim())}`);
  Object.assign(Scorer, {
    partialTitle: 1,
    partialTerm: 1,
    score: ([, title, , , score]) => (word.test(title.toLowerCase()) ? score + 10 : score),
  });
  const plain = Search.htmlToText;
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    page.querySelectorAll("div.math, details.hide, .section-code, .headerlink, #jb-print-toc, script, style").forEach((node) => node.remove());
    page.querySelectorAll("span.math").forEach((node) => node.replaceWith("…"));
    return plain(page.documentElement.outerHTML, anchor);
  };
}

// A claim that a link leads to is opened, with the folds around it, and seen.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.closest("details")) return;
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.scrollIntoView();
}

// The buttons that open solutions are called alike; for a screen reader each has the name of its own.
function nameButtons() {
  for (const button of document.querySelectorAll(".admonition > .toggle-button"))
    button.setAttribute("aria-label", button.parentElement.querySelector(".admonition-title").textContent.trim());
}

// On a telephone long names in code break before a capital and after a sign, not in the middle of a word.
function breakNames() {
  if (!matchMedia("(max-width: 600px)").matches) return;
  for (const name of document.querySelectorAll(".bd-article :is(code, dt) .pre, .genindextable a")) {
    if (name.childElementCount || name.textContent.length < 16) continue;
    const parts = name.textContent.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[_=(.,/])(?=\w)/);
    name.replaceChildren(...parts.flatMap((part, k) => (k ? [document.createElement("wbr"), part] : [part])));
  }
}

// The drawer of a telephone opens at the current page.
const drawer = document.getElementById("pst-primary-sidebar-modal");
document.querySelector(".primary-toggle")?.addEventListener("click", () =>
  requestAnimationFrame(() => drawer?.querySelector("nav .active > a")?.scrollIntoView({ block: "center" })));

breakNames();
window.addEventListener("load", cues);
window.addEventListener("load", nameButtons);
window.addEventListener("load", openTarget);
window.addEventListener("hashchange", openTarget);

// The button that leads to the top is shown in the header, where it covers nothing.
const header = document.querySelector(".header-article-items__end");
if (header) header.prepend(...document.querySelectorAll("#pst-back-to-top"));

// Sphinx calls the bibliography a list, whose items it does not call so.
document.querySelector(".citation-list")?.removeAttribute("role");
if (document.getElementById("search-results")) search(); // after searchtools.js, and before it begins

// Paper is white.
const root = document.documentElement.dataset;
window.addEventListener("beforeprint", () => ([root.screen, root.theme] = [root.theme, "light"]));
window.addEventListener("afterprint", () => (root.theme = root.screen));
