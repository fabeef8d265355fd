// Turns the front page of a built book into the whole book: its contents, all pages, solutions at the end. Links from
// page to page become links within it. A link to a file next to the pages becomes plain text, unless the page says
// where it is published.
async (names) => {
  const root = new URL("./", location.href);
  const make = (tag, content) => Object.assign(document.createElement(tag), content);
  const nameOf = (url) => decodeURI(url.pathname).slice(root.pathname.length).replace(/\.html$/, "");

  // A part of a page, whose ids are "id@page".
  const own = (part, name, published) => {
    const here = new URL(`${name}.html`, root);
    part.querySelectorAll("script, button, .headerlink").forEach((node) => node.remove());
    for (const node of part.querySelectorAll("[id]")) node.id = `${node.id}@${name}`;
    for (const node of part.querySelectorAll("[src]")) node.src = new URL(node.getAttribute("src"), here);
    for (const node of part.querySelectorAll("[href]")) {
      const url = new URL(node.getAttribute("href"), here);
      if (names.includes(nameOf(url))) node.href = `#${url.hash.slice(1)}@${nameOf(url)}`;
      else if (published) node.href = new URL(node.getAttribute("href"), published);
      else if (url.origin === root.origin) node.removeAttribute("href");
    }
    return part;
  };

  const contents = make("article", { innerHTML: "<h1>Contents</h1>", id: "contents" });
  contents.append(...own(document.querySelector(".bd-links .bd-toc-item"), names[0]).children);
  contents.querySelectorAll("details").forEach((fold) => (fold.open = true));
  const articles = [];
  for (const name of names) {
    const text = await (await fetch(new URL(`${name}.html`, root))).text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const article = page.querySelector("article.bd-article");
    articles.push(own(article, name, page.querySelector("link[rel=canonical]")?.href));
    article.id = `@${name}`;
  }
  articles.splice(1, 0, contents);

  const solutions = make("article", { innerHTML: "<h1>Solutions</h1>", id: "solutions" });
  for (const solution of articles.flatMap((article) => [...article.querySelectorAll(".solution")])) {
    const title = solution.querySelector(".admonition-title").textContent;
    const place = make("p", { innerHTML: "<a></a>" });
    Object.assign(place.firstChild, { href: `#${solution.id}`, textContent: title });
    solution.replaceWith(place);
    solutions.append(solution);
  }
  if (solutions.childElementCount > 1) {
    articles.push(solutions);
    contents.append(make("p", { className: "caption", innerHTML: '<a href="#solutions">Solutions</a>' }));
  }

  const whole = make("main", { className: "bd-main whole", innerHTML: '<div class="bd-content"></div>' });
  for (const article of articles) article.className = "bd-article";
  whole.firstChild.append(...articles);
  for (const part of document.body.children) part.style.setProperty("display", "none", "important");
  document.body.append(whole);

  // On the list of claims each is a line; what a closed fold hides, a link finds at the fold.
  whole.querySelectorAll(".claims-fold").forEach((fold) => (fold.open = true));
  whole.querySelectorAll("details").forEach((fold, k) => (fold.id ||= `fold-${k}`));
  for (const link of whole.querySelectorAll('a[href^="#"]')) {
    let target = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    for (let fold = target; fold; fold = fold.parentElement.closest("details:not([open])")) target = fold;
    if (target) link.href = `#${target.id}`;
    else link.removeAttribute("href");
  }
  await window.MathJax?.typesetPromise([whole]);
  for (const image of whole.querySelectorAll("img")) {
    image.loading = "eager";
    await image.decode();
  }
};
