// Questions to a built page, asked in the browser. Most return a list of sentences: what is wrong, and where.
window.probes = (() => {
  const page = document.documentElement;
  const main = document.querySelector("article, .bd-search-container") || document.body;
  const SLACK = 2; // pixels: browsers round
  const WIDE = "mjx-container, pre, table, figure, img, svg";

  const addStyle = (text) => document.head.appendChild(Object.assign(document.createElement("style"), { textContent: text }));
  addStyle("* { transition: none !important; scroll-behavior: auto !important }"); // all stands still when it is asked

  const all = (selector, root = main) => [...root.querySelectorAll(selector)];
  const style = (element) => getComputedStyle(element);
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const isMath = (element) => element.closest("mjx-container") !== null && element.tagName !== "MJX-CONTAINER";
  const sideways = (element) => /auto|scroll/.test(style(element).overflowX);
  const isTyped = (element) => element.tagName === "TEXTAREA"; // its text is the reader's own, and scrolls as in every form
  const overflow = (element) => element.scrollWidth - element.clientWidth;

  // Text that is only for screen readers lies in a box of one pixel.
  const forReaders = (element) => {
    const box = element.getBoundingClientRect();
    return box.width < 3 || box.height < 3;
  };

  // Elements whose text or drawing a reader sees, without the glyphs inside an equation; found once a round.
  let seen = [];
  const visible = (selector = "*") => seen.filter((element) => element.matches(selector));

  const ancestors = (element) => {
    const result = [];
    for (let parent = element.parentElement; parent && parent !== page; parent = parent.parentElement) result.push(parent);
    return result;
  };

  const name = (element) => {
    const id = element.id || ancestors(element).find((parent) => parent.id && main.contains(parent))?.id;
    const words = [...(element.innerText || element.alt || element.textContent).replace(/\s+/g, " ").trim()].slice(0, 40).join("");
    const classes = [...element.classList].slice(0, 3).map((entry) => "." + entry).join("");
    return `${element.tagName.toLowerCase()}${classes}${id ? ` in #${id}` : ""}${words ? ` "${words}"` : ""}`;
  };

  // Opens all folds, and loads the images that would wait until they are scrolled to.
  const unfold = async () => {
    all("details:not([open])").forEach((element) => element.setAttribute("open", ""));
    all("button.toggle-button-hidden").forEach((button) => button.click());
    await loadImages();
  };
  const loadImages = () => {
    const images = all("img", document);
    images.forEach((image) => { image.loading = "eager"; });
    return Promise.all(images.map((image) => image.complete || new Promise((done) => {
      image.addEventListener("load", done);
      image.addEventListener("error", done);
    })));
  };

  // The page itself never scrolls sideways, and nothing lies beyond its edges.
  const leaves = () => {
    const width = page.clientWidth;
    const wrong = page.scrollWidth > width ? [`the page is ${page.scrollWidth} wide in a window of ${width}`] : [];
    const out = visible().filter((element) => {
      const { left, right } = element.getBoundingClientRect();
      return (right > width + SLACK || left < -SLACK) && !ancestors(element).some(sideways);
    });
    const outermost = out.filter((element) => !out.includes(element.parentElement));
    const ends = (element) => ["left", "right"].map((side) => Math.round(element.getBoundingClientRect()[side]));
    return wrong.concat(outermost.map((element) => `${name(element)} goes from ${ends(element).join(" to ")} of ${width}`));
  };

  // A wide thing scrolls in a box of its own; it neither spills out of the column of text nor is cut.
  const spills = () => {
    const right = main.getBoundingClientRect().right;
    return visible(WIDE)
      .filter((element) => element.getBoundingClientRect().right > right + SLACK)
      .filter((element) => !ancestors(element).some(sideways))
      .map((element) => `${name(element)} ends at ${Math.round(element.getBoundingClientRect().right)}, the text at ${Math.round(right)}`);
  };
  const cut = () =>
    visible()
      .filter((element) => element.clientWidth > 0 && !["inline", "contents"].includes(style(element).display) && !isTyped(element))
      .flatMap((element) => {
        const { overflowX, overflowY } = style(element);
        const wide = /hidden|clip/.test(overflowX) && overflow(element) > SLACK;
        // A box that scrolls sideways also cuts, or scrolls, what is too tall for it.
        const tall = overflowY !== "visible" && element.scrollHeight - element.clientHeight > SLACK;
        return [
          ...(wide ? [`${name(element)} shows ${element.clientWidth} of ${element.scrollWidth} in width`] : []),
          ...(tall ? [`${name(element)} shows ${element.clientHeight} of ${element.scrollHeight} in height`] : []),
        ];
      });

  // What can be scrolled says so: by an edge that fades or carries a shadow (the reader's own scroll bar may be
  // hidden until it is touched), drawn on the box itself, on ::before or ::after, or on the box around it.
  const cue = (element) => {
    const drawn = (pseudo, box = element) => {
      const { backgroundImage, boxShadow, maskImage, content } = getComputedStyle(box, pseudo);
      const edge = /gradient/.test(backgroundImage) || /inset/.test(boxShadow) || /gradient/.test(maskImage);
      return pseudo ? !["none", "normal"].includes(content) && (edge || content.length > 2) : edge;
    };
    return [null, "::before", "::after"].some((pseudo) => drawn(pseudo)) || drawn("::after", element.parentElement);
  };
  const scrolling = () => visible().filter((element) => sideways(element) && overflow(element) > SLACK);
  const uncued = () =>
    scrolling()
      .filter((element) => !cue(element) && !isTyped(element))
      .map((element) => `${name(element)} scrolls ${element.scrollWidth} in ${element.clientWidth} without a cue`);

  // An equation's number is next to it, never on it. On a wide page a numbered equation needs no scrolling.
  const numbered = () => visible("div.math").filter((element) => element.querySelector(".eqno"));
  const numbers = () =>
    numbered().flatMap((element) => {
      const number = element.querySelector(".eqno").getBoundingClientRect();
      const covered = all("mjx-math", element).some((formula) => {
        const box = formula.getBoundingClientRect();
        const frames = ancestors(formula).filter(sideways).map((frame) => frame.getBoundingClientRect());
        const right = Math.min(box.right, ...frames.map((frame) => frame.right));
        const left = Math.max(box.left, ...frames.map((frame) => frame.left));
        return right > number.left + SLACK && left < number.right - SLACK
          && box.bottom > number.top + SLACK && box.top < number.bottom - SLACK;
      });
      return covered ? [`${name(element)} runs into its number`] : [];
    });
  const equations = () => {
    const boxes = innerWidth < 1000 ? [] : scrolling();
    return numbered()
      .filter((element) => boxes.some((box) => box.contains(element) || element.contains(box)))
      .map((element) => `${name(element)} needs scrolling`);
  };

  // Targets of links must be shown, in the window, and below the fixed header; `follow` goes to each one first.
  const hidden = (targets, follow) =>
    targets.flatMap((target) => {
      const element = document.getElementById(target);
      if (!element) return [`#${target} is not there`];
      if (follow) location.hash = "#" + encodeURIComponent(target);
      const wrong = element.checkVisibility({ visibilityProperty: true }) ? misplaced(element) : "is not shown";
      return wrong ? [`#${target} ${wrong}`] : [];
    });
  // Of targets that are not followed: after all folds are opened, each is there and shown.
  const absent = (targets) =>
    targets.flatMap((target) => {
      const element = document.getElementById(target);
      if (!element) return [`#${target} is not there`];
      return element.checkVisibility({ visibilityProperty: true }) ? [] : [`#${target} is not shown`];
    });
  const misplaced = (element) => {
    const box = element.getBoundingClientRect();
    if (box.bottom < 0 || box.top > innerHeight - 8) return `is at ${Math.round(box.top)}, out of a window of ${innerHeight}`;
    const line = Math.min(Math.max(box.height, 2), 20) / 2; // the middle of its first line
    const over = document.elementFromPoint(Math.min(Math.max(box.left + 2, 0), innerWidth - 2), box.top + line);
    const fixed = over && [over, ...ancestors(over)].find((parent) => /fixed|sticky/.test(style(parent).position));
    return fixed && !fixed.contains(element) && !element.contains(fixed) ? `lies behind ${name(fixed)} at ${Math.round(box.top)}` : "";
  };

  // A screen reader reads elements in the order of the source: headings skip no level, landmarks of one kind are
  // distinguished by their labels, images have a text, and what comes later in the source is not above what comes before.
  const reading = () => {
    const headings = visible("h1, h2, h3, h4, h5, h6");
    const level = (element) => Number(element.tagName[1]);
    const titles = headings.filter((element) => level(element) === 1);
    const skips = headings.slice(1).filter((element, k) => level(element) > level(headings[k]) + 1);
    const silent = visible("img, svg[role=img], figure svg").filter((element) => !describes(element));
    return [
      ...(titles.length === 1 ? [] : [`the page has ${titles.length} headings of level 1`]),
      ...skips.map((element) => `${name(element)} skips a level`),
      ...silent.map((element) => `${name(element)} has no text alternative`),
      ...unlabelled(),
      ...jumps(),
    ];
  };
  const describes = (element) =>
    element.getAttribute("aria-label") || element.getAttribute("aria-labelledby") || element.alt || element.querySelector("title")
    || element.parentElement.closest("[aria-hidden=true], [role=img], button, a[aria-label]") || element.matches("[aria-hidden=true], [role=presentation]");
  const unlabelled = () => {
    const wrong = [];
    for (const kind of ["nav, [role=navigation]", "main, [role=main]", "aside, [role=complementary]", "search, [role=search]"]) {
      const landmarks = all(kind, document).filter(shown);
      const labels = landmarks.map((element) => {
        const by = document.getElementById(element.getAttribute("aria-labelledby"));
        return element.getAttribute("aria-label") || by?.textContent.trim() || "";
      });
      landmarks.forEach((element, k) => {
        if (landmarks.length > 1 && (!labels[k] || labels.indexOf(labels[k]) !== k)) wrong.push(`${name(element)} is a landmark without a label of its own`);
      });
    }
    return wrong;
  };
  const BLOCKS = "h1, h2, h3, h4, h5, h6, p, li, pre, table, figure, div.math";
  const jumps = () => {
    const inFlow = (element) => [element, ...ancestors(element)].every((box) => style(box).float === "none" && /static|relative/.test(style(box).position) || box.contains(main));
    const blocks = visible(BLOCKS).filter((element) => !element.parentElement.closest("table, figure, .explorer, nav") && inFlow(element));
    const boxes = blocks.map((element) => element.getBoundingClientRect());
    const jumped = (box, before) => box.top < before.top - SLACK && box.left < before.right - SLACK; // not a column next to it
    return blocks.slice(1).filter((element, k) => jumped(boxes[k + 1], boxes[k])).map((element) => `${name(element)} stands above what is read before it`);
  };

  // Letters of a figure are paths, scaled from a hundred units an em; exponents are smaller by custom.
  const letters = async (smallest) => {
    await loadImages();
    const found = [];
    for (const image of all("figure img")) {
      if (!image.clientWidth) continue; // the static picture of an explorer
      const text = await (await fetch(image.currentSrc)).text();
      const drawing = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      const scale = image.getBoundingClientRect().width / drawing.viewBox?.baseVal.width;
      for (const one of drawing.querySelectorAll('g[id^="text_"] > g[transform*="scale"]')) {
        const height = Number(one.getAttribute("transform").match(/scale\((\S+)/)[1]) * 100 * scale;
        if (height < smallest) found.push(`${name(image)}: ${one.parentNode.id} is ${height.toFixed(1)} high`);
      }
    }
    return found;
  };

  // Measures of a page before anything is opened: its height, its words, its longest paragraph, the place of its
  // first picture, and the fraction of its height that claims and bars of folded code take.
  const BARS = ".claim, .section-claims, .section-code, details.hide, .claim-badge";
  const shape = () => {
    const box = main.getBoundingClientRect();
    const count = (element) => element.innerText.split(/\s+/).filter(Boolean).length;
    const pictures = all("figure, .explorer").filter(shown).map((element) => element.getBoundingClientRect().top - box.top);
    const paragraphs = all("p").filter(shown).map(count);
    const wasOpen = all("details[open]");
    wasOpen.forEach((element) => element.removeAttribute("open"));
    const bars = all(BARS).filter((element) => shown(element) && !element.parentElement.closest(BARS));
    const height = (element) => {
      const { marginTop, marginBottom } = style(element);
      return element.getBoundingClientRect().height + parseFloat(marginTop) + parseFloat(marginBottom);
    };
    const share = bars.reduce((sum, element) => sum + height(element), 0) / main.getBoundingClientRect().height;
    wasOpen.forEach((element) => element.setAttribute("open", ""));
    return {
      height: Math.round(box.height),
      words: count(main),
      longest_paragraph: Math.max(0, ...paragraphs),
      first_picture: pictures.length ? Math.round(Math.min(...pictures)) : null,
      bars: Math.round(share * 1000) / 1000,
    };
  };

  const layout = () => {
    // The copy of each equation for screen readers lies in a box of one pixel, but would count as content.
    const hide = addStyle("mjx-assistive-mml { display: none !important }");
    seen = all("*").filter((element) => !isMath(element) && shown(element) && !forReaders(element));
    const questions = { leaves, spills, cut, uncued, numbers, equations, reading };
    const answers = Object.fromEntries(Object.entries(questions).map(([rule, question]) => [rule, question()]));
    hide.remove();
    return answers;
  };

  // One element for each look of text (colors, size, weight): the rules of color judge looks, not elements.
  const looks = () => {
    const grounds = new Map([[null, ""]]);
    const ground = (element) => {
      if (!grounds.has(element)) {
        const { backgroundColor, backgroundImage, opacity } = style(element);
        const own = [backgroundColor, backgroundImage, opacity].join();
        const below = /^rgb\(/.test(backgroundColor) ? "" : ground(element.parentElement); // opaque
        grounds.set(element, own === "rgba(0, 0, 0, 0),none,1" ? below : own + below);
      }
      return grounds.get(element);
    };
    const found = new Map();
    const judged = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (judged.has(element) || !walker.currentNode.data.trim()) continue;
      judged.add(element);
      const { color, fontSize, fontWeight, textDecorationLine } = style(element);
      const size = parseFloat(fontSize) * (fontWeight >= 700 ? 24 / 18.66 : 1);
      const link = element.tagName === "A" && [textDecorationLine, fontWeight, style(element.parentElement).color];
      const look = [color, size >= 24, ground(element), link].join("|");
      if (!found.has(look) && shown(element)) found.set(look, element);
    }
    return [...found.values()];
  };
  const looksIn = {};
  const findLooks = () => {
    for (const _ of ["this theme", "the other one"]) {
      looksIn[page.dataset.theme] = looks();
      changeTheme();
    }
  };
  // axe walks through all elements, and most are glyphs of equations and words of code: here they become boxes
  // of the same size and plain text, except where they are the example of a look.
  const simplify = () => {
    const examples = new Set(Object.values(looksIn).flat());
    const formulas = all("mjx-math", document);
    const sizes = formulas.map((formula) => {
      const { width, height } = formula.getBoundingClientRect();
      const em = parseFloat(style(formula).fontSize); // which is smaller on a telephone
      return { width: `${width / em}em`, height: `${height / em}em` };
    });
    formulas.forEach((formula, k) => {
      formula.replaceChildren();
      Object.assign(formula.style, { display: "inline-block", ...sizes[k] });
    });
    for (const text of all("mjx-assistive-mml, pre", document))
      if (![...examples].some((element) => text.contains(element))) text.replaceChildren(text.textContent);
  };
  // Empties all that neither holds an example of a look nor lies in one: the rules of color need no more.
  const strip = () => {
    const kept = new Set();
    for (const example of [...Object.values(looksIn).flat(), document.querySelector(".theme-switch-button")])
      [example, ...ancestors(example), ...example.querySelectorAll("*")].forEach((element) => kept.add(element));
    for (const element of all("*", document.body))
      if (!kept.has(element) && kept.has(element.parentElement)) element.replaceChildren();
  };
  // Serious and critical findings of axe: of its rules of color, of those named, or of all others ("region" asks that
  // everything lies in a landmark).
  const COLORS = ["color-contrast", "link-in-text-block"];
  const axeFinds = async (rules) => {
    const usual = { resultTypes: ["violations"], preload: false };
    const off = Object.fromEntries([...COLORS, "region"].map((rule) => [rule, { enabled: false }]));
    const examples = looksIn[page.dataset.theme].filter((element) => element.isConnected);
    const results = rules === "colors" ? await axe.run({ include: examples }, { ...usual, runOnly: COLORS })
      : await axe.run(document, rules ? { ...usual, runOnly: rules } : { ...usual, rules: off });
    // A box that scrolls by a pixel or two needs no focus; axe forgets its own tolerance when many rules run.
    const scrolls = (node) => {
      const element = document.querySelector(node.target[0]);
      return Math.max(overflow(element), element.scrollHeight - element.clientHeight) > SLACK;
    };
    return results.violations
      .filter((rule) => ["serious", "critical"].includes(rule.impact))
      .flatMap((rule) => rule.nodes
        .filter((node) => rule.id !== "scrollable-region-focusable" || scrolls(node))
        .map((node) => `${rule.id} (${rule.impact}): ${node.target.join(" ")} ${node.any[0]?.message ?? rule.help}`));
  };

  // The other theme, by the button of the page: light, automatic, dark, and round again.
  const changeTheme = () => {
    const before = page.dataset.theme;
    const button = document.querySelector(".theme-switch-button");
    for (let k = 0; k < 2 && page.dataset.theme === before; k++) button.click();
    return page.dataset.theme;
  };

  // A walk by Tab: each stop, and how it looks with the focus and without.
  const stops = [];
  const look = (element) =>
    [element, element.parentElement, ...element.querySelectorAll("*")].slice(0, 9).map((one) => {
      const { outline, boxShadow, backgroundColor, borderColor, stroke, textDecoration } = style(one);
      return [outline, boxShadow, backgroundColor, borderColor, stroke, textDecoration].join();
    }).join();
  const stop = () => {
    const last = stops.at(-1), element = document.activeElement;
    if (last) last.without = look(last.element);
    if (element !== document.body) stops.push({ element, focused: look(element) });
    return element !== document.body;
  };
  const walked = (controls) => {
    const reached = stops.map(({ element }) => element);
    const follows = (one, other) => one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
    return {
      missed: all(controls, document)
        .filter((element) => shown(element) && !element.disabled && element.tabIndex >= 0 && !reached.includes(element)).map(name),
      backwards: reached.filter((element, k) => k && !follows(reached[k - 1], element)).map(name),
      unseen: stops.filter(({ focused, without }) => focused === without).map(({ element }) => name(element)),
    };
  };

  // In the panels of an explorer no word is cut, or meets another one, a curve or a mark; what is written on a grip moves with it.
  const points = (drawn, clip) => {
    const { a, c, e, b, d, f } = drawn.getScreenCTM(), steps = drawn.matches("path.line") ? 0 : 60;
    const length = steps ? drawn.getTotalLength() : 0;
    const corners = steps ? Array.from({ length: steps }, (_, k) => drawn.getPointAtLength((length * k) / steps)).map(({ x, y }) => [x, y])
      : drawn.getAttribute("d").match(/[-\d.]+,[-\d.]+/g).map((pair) => pair.split(",").map(Number));
    const places = corners.map(([x, y]) => [a * x + c * y + e, b * x + d * y + f]);
    const between = places.slice(1).flatMap(([x, y], k) => {
      const [u, v] = places[k], n = Math.min(400, Math.ceil(Math.hypot(x - u, y - v)));
      return Array.from({ length: n }, (_, j) => [u + ((x - u) * j) / n, v + ((y - v) * j) / n]);
    });
    return [...places, ...between].filter(([x, y]) => !clip || (x >= clip.left && x <= clip.right && y >= clip.top && y <= clip.bottom));
  };
  const clashes = (panel) => {
    const words = all("text", panel).filter((text) => text.textContent && shown(text) && !text.closest(".grip, .press"));
    const boxes = words.map((text) => [text.textContent, text.getBoundingClientRect()]);
    const clip = panel.querySelector(".axis")?.getBoundingClientRect();
    const pairs = boxes.flatMap(([one, p], k) => boxes.slice(k + 1)
      .filter(([, q]) => p.left < q.right && q.left < p.right && p.top + 1 < q.bottom && q.top + 1 < p.bottom).map(([other]) => `"${one}" meets "${other}"`));
    const { left, right } = panel.getBoundingClientRect();
    const cut = boxes.filter(([, box]) => box.left < left - 1 || box.right > right + 1).map(([word]) => `"${word}" is cut`);
    const drawn = all("path:not(.axis), line:not(.grid, .hit), circle:not([fill]), .handle", panel).filter(shown);
    return pairs.concat(cut, drawn.flatMap((curve) => {
      const around = curve.getBoundingClientRect();
      const near = boxes.some(([, box]) => around.left <= box.right && around.right >= box.left && around.top <= box.bottom && around.bottom >= box.top);
      if (!near) return [];
      const places = points(curve, curve.closest("[clip-path]") && clip);
      const under = boxes.filter(([, box]) => places.some(([x, y]) => x > box.left && x < box.right && y > box.top + 1 && y < box.bottom - 1));
      return under.map(([word]) => `"${word}" lies on ${curve.getAttribute("class")} of ${panel.getAttribute("aria-label")}`);
    }));
  };
  const words = (explorer, moving = true) => {
    const found = new Set(), states = new Set(), controls = (selector) => all(`${explorer} .explorer-ui ${selector}`);
    const look = () => {
      states.add(all(`${explorer} .explorer-state`)[0].innerText);
      all(`${explorer} .explorer-panels > div > svg`).forEach((panel) => clashes(panel).forEach((clash) => found.add(clash)));
    };
    const choose = (control, value, event) => { control.value = value; control.dispatchEvent(new Event(event)); look(); };
    const sliders = () => controls("input[type=range]").filter(shown).forEach((slider) => {
      const { min, max, value } = slider;
      for (let k = 0; k <= 8; k++) choose(slider, +min + ((max - min) * k) / 8, "input");
      choose(slider, value, "input");
    });
    look();
    if (!moving) return [...found];
    sliders();
    controls("select").filter(shown).forEach((list) => [...list.options].filter((option) => !option.disabled).slice(-4).forEach(({ value }) => choose(list, value, "change")));
    controls("button, [type=radio]").filter(shown).forEach((button) => { button.click(); look(); });
    controls("[role=switch]").forEach((line) => { line.dispatchEvent(new MouseEvent("click")); look(); });
    controls("[role=slider]").forEach((grip) => ["Left", "Down", "Right", "Up"].forEach((way) => {
      for (let k = 0; k < 20; k++) grip.dispatchEvent(new KeyboardEvent("keydown", { key: `Arrow${way}` }));
      look();
    }));
    sliders();
    return states.size > 1 ? [...found] : ["nothing moves"];
  };

  return { shape, hidden, absent, unfold, layout, letters, stop, walked, words, findLooks, simplify, strip, axeFinds, changeTheme };
})();
