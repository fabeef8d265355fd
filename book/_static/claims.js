"use strict";

// The filters of the claims page. Without this script the page is whole: folds of papers, sections and claims.
function claimFilters(claims) {
  const folds = [...document.querySelectorAll(".claims-fold")];
  const notCounted = ["reproduction", "background check"];
  const [others, counted] = [true, false].map((apart) =>
    claims.filter((claim) => notCounted.includes(claim.dataset.kind) === apart));
  const counts = new Map(folds.map((fold) => [fold, fold.querySelector(".counts")]));
  const heads = new Map([...counts.values()].map((head) => [head, head.textContent]));
  const shown = (some) => some.filter((claim) => !claim.hidden).length;
  const texts = new Map(claims.map((claim) => [claim, claim.textContent.toLowerCase()]));
  const asked = new URLSearchParams(location.search);
  const form = document.createElement("form");
  form.className = "claims-filters";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Claims");

  const add = (name, control) => {
    const label = document.createElement("label");
    control.name = name;
    label.append(name, control);
    form.append(label);
    return control;
  };
  const choices = ["paper", "verdict", "kind", "consequence", "chapter"].flatMap((name) => {
    const values = [...new Set(claims.map((claim) => claim.dataset[name]).filter(Boolean))].sort();
    if (!values.length) return [];
    const select = add(name, document.createElement("select"));
    select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    select.value = values.includes(asked.get(name)) ? asked.get(name) : "";
    return [select];
  });
  const words = add("words", Object.assign(document.createElement("input"), { type: "search", value: asked.get("words") ?? "" }));
  const reset = Object.assign(document.createElement("button"), { type: "button", textContent: "Show all" });
  const said = document.createElement("output");
  form.append(reset, said);

  const update = () => {
    const used = [...choices, words].filter((control) => control.value);
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (claim) =>
      choices.every(({ name, value }) => !value || claim.dataset[name] === value)
      && wanted.every((word) => texts.get(claim).includes(word));
    for (const claim of claims) claim.hidden = !fits(claim);
    for (const fold of folds) {
      fold.hidden = !fold.querySelector(".claim:not([hidden])");
      fold.open = used.length > 0;
      const [head, inside] = [counts.get(fold), [...fold.querySelectorAll(".claim")]];
      head.textContent = used.length ? `${shown(inside)} of ${inside.length} shown` : heads.get(head);
    }
    reset.disabled = !used.length;
    const rest = others.length ? `, ${shown(others)} of ${others.length} other entries` : "";
    said.value = used.length ? `${shown(counted)} of ${counted.length} claims shown${rest}` : "";
    if (location.protocol === "file:") return; // which has no address for a choice
    const query = new URLSearchParams(used.map(({ name, value }) => [name, value]));
    history.replaceState(null, "", location.pathname + (used.length ? `?${query}` : "") + location.hash);
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  reset.addEventListener("click", () => {
    for (const control of [...choices, words]) control.value = "";
    update();
    words.focus();
  });
  folds[0].before(form);
  reset.disabled = true;
  if (![...choices, words].some((control) => control.value)) return;
  update();
  if (!location.hash) form.scrollIntoView(); // on a telephone the choice is below what opens the page
}

const listed = [...document.querySelectorAll(".claims-fold .claim")];
if (listed.length) claimFilters(listed);
