"use strict";

/* The calculator of the page scores_in_the_browser: scores from a table of comparisons that a reader pastes.

   The script loads nothing and sends nothing. The first two parts, which read a table and fit a model, do not use the
   page, so that tests can run them in node. Names and values from a table become text nodes, never markup. */
(function () {
  // ---- The table

  const MAX_ITEMS = 200;
  const REPORT = "preflearn report FILE --judgements";
  const TIES = ["tie", "tied", "draw", "drawn", "d", "=", "½", "1/2", "½-½", "1/2-1/2", "no preference", "neither", "equal", "same"];
  const SIDES = [["first", "second"], ["win", "loss"], ["won", "lost"], ["w", "l"], ["h", "a"], ["home", "away"], ["a", "b"],
    ["left", "right"], ["white", "black"], ["true", "false"], ["yes", "no"]];
  const ROLES = {
    first: ["first", "item1", "item_1", "player1", "player_1", "model_a", "home", "white", "left", "a"],
    second: ["second", "item2", "item_2", "player2", "player_2", "model_b", "away", "black", "right", "b"],
    outcome: ["outcome", "result", "winner", "preferred", "choice", "better", "won"],
    weight: ["weight", "count", "n", "times", "frequency"],
  };
  // Titles of a column that says who answered. The page does not use it; the report does.
  const PERSONS = ["judge", "friend", "person", "rater", "user", "who", "annotator", "respondent", "voter"];

  /** An error in a table. The message names the line, the problem, and the remedy. */
  class TableError extends Error {}

  const shorten = (letters, most) => (letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join(""));
  const quote = text => `“${shorten([...text], 60)}”`;
  const some = (names, most = 5) => {
    const more = names.length - most;
    return names.slice(0, most).map(quote).join(", ") + (more > 0 ? ` and ${more} more` : "");
  };

  /** The separator that occurs most often in a line, outside of quotes. */
  function separatorOf(line) {
    const bare = line.replace(/"[^"]*"/g, "");
    const counts = ["\t", ";", ","].map(sign => [bare.split(sign).length - 1, sign]);
    return counts.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
  }

  /** The values of a line. A value in quotes may hold the separator; two quotes in it are one. */
  function splitLine(line, separator, number) {
    const cells = [];
    let rest = line;
    for (;;) {
      const quoted = rest.match(/^ *"((?:[^"]|"")*)" */);
      if (quoted) {
        cells.push(quoted[1].replace(/""/g, '"').trim());
        rest = rest.slice(quoted[0].length);
        if (rest && !rest.startsWith(separator))
          throw new TableError(`Line ${number}: after the quoted value ${quote(quoted[1])} follows ${quote(rest)}. Inside a quoted value, write each quote as two quotes.`);
      } else if (/^ *"/.test(rest)) {
        throw new TableError(`Line ${number}: the quote at the beginning of ${quote(rest.trim())} is not closed in this line. Close it or delete it. A name may not contain a line break.`);
      } else {
        const end = rest.indexOf(separator);
        const value = end < 0 ? rest : rest.slice(0, end);
        cells.push(value.trim());
        rest = rest.slice(value.length);
      }
      if (!rest) return cells;
      rest = rest.slice(separator.length);
    }
  }

  /** The lines of a table that are not empty, as { number, cells }, all of the same width. */
  function splitTable(text) {
    const lines = text.replace(/^\uFEFF/, "").normalize("NFC").split(/\r\n|\r|\n/)
      .map((line, k) => ({ number: k + 1, line })).filter(({ line }) => line.trim());
    if (!lines.length) throw new TableError("The table is empty. Paste one line for each comparison, such as: Ann, Bob, Ann");
    if (text.includes("\uFFFD")) throw new TableError("Some characters of the table could not be read. Save the file in UTF-8, or copy the table from the program that displays it.");
    const separator = separatorOf(lines[0].line);
    const rows = lines.map(({ number, line }) => ({ number, cells: splitLine(line, separator, number) }));
    const lengths = rows.map(({ cells }) => cells.findLastIndex(cell => cell) + 1);
    const width = lengths[0];
    if (width < 2) throw new TableError(`Line ${rows[0].number}: ${quote(lines[0].line.trim())} contains only one value. Separate the values by commas, semicolons, or tabs.`);
    rows.forEach(({ number, cells }, k) => {
      if (lengths[k] > width) throw new TableError(`Line ${number} has ${lengths[k]} values, but line ${rows[0].number} has ${width}. If a value contains the separator, write it in quotes.`);
      rows[k].cells = Array.from({ length: width }, (_, j) => cells[j] ?? "");
    });
    return { rows, separator, width, composed: text !== text.normalize("NFC") };
  }

  /** Whether the first line names the columns: it has a usual name, or no name that occurs again below. */
  function hasHeader(rows) {
    const usual = [...Object.values(ROLES).flat(), ...PERSONS, "loser"];
    const [head, ...body] = rows.map(({ cells }) => cells);
    const pair = head.slice(0, 2);
    const isOutcome = cell => pair.includes(cell) || isTie(cell) || !Number.isNaN(toNumber(cell, ";"));
    if (head.slice(2).some(isOutcome)) return false;
    if (head.some(cell => cell.length > 1 && usual.includes(cell.toLowerCase()))) return true;
    return body.length > 0 && !body.some(cells => pair.includes(cells[0]) || pair.includes(cells[1]));
  }

  const isPerson = title => PERSONS.includes(title.toLowerCase());

  /** Numbers of the columns with the items, the outcome (null: the first won) and the weight (null: 1). A column of
      persons is none of them, unless fewer than two columns remain for the items. */
  function guessColumns(titles, headed) {
    const low = titles.map(title => title.toLowerCase());
    const taken = new Set();
    const take = k => {
      if (k < 0) return null;
      taken.add(k);
      return k;
    };
    const next = () => take(low.findIndex((_, k) => !taken.has(k)));
    // A winner next to a loser is an item; else a winner is an outcome.
    const won = low.includes("winner") && low.includes("loser");
    const roles = won ? { ...ROLES, first: ["winner"], second: ["loser"], outcome: [] } : ROLES;
    const named = role => {
      const name = headed && roles[role].find(one => low.includes(one) && !taken.has(low.indexOf(one)));
      return name ? take(low.indexOf(name)) : null;
    };
    const outcome = named("outcome");
    const weight = named("weight");
    const left = named("first");
    const right = named("second");
    const missing = [left, right].filter(k => k === null).length;
    const persons = headed ? titles.flatMap((title, k) => (isPerson(title) && !taken.has(k) ? [k] : [])) : [];
    if (titles.length - taken.size - persons.length >= missing) persons.forEach(take);
    const first = left ?? next();
    const second = right ?? next();
    return { first, second, outcome: outcome ?? (won ? null : next()), weight: weight ?? (headed ? null : next()) };
  }

  /** A number, also with a decimal comma where the comma separates nothing; NaN for anything else. */
  function toNumber(text, separator) {
    const plain = separator === "," ? text : text.replace(/^([^,]*),([^,]*)$/, "$1.$2");
    return /^[-+−]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain.replace("−", "-")) : NaN;
  }

  const isTie = text => TIES.includes(text.toLowerCase().replace(/\(.*/, "").trim());  // also "tie (bothbad)"

  /** The ways to read a column of outcomes. Each gives 1 (the first won), 0, -1, or undefined if it does not fit. */
  function readings(entries, titles, separator) {
    const number = text => toNumber(text === "½" ? "0.5" : text.replace(/^1\/2$/, "0.5"), separator);
    const signed = entries.some(({ outcome }) => number(outcome) < 0);
    const known = new Set(entries.flatMap(({ first, second }) => [first, second]));  // an item may be called "Draw"
    const names = {
      expected: row => `${quote(row.first)} or ${quote(row.second)} (the winner), or tie`,
      note: "Outcomes are read as the name of the winner.",
      read: ({ first, second, outcome }) => {
        if (outcome === first) return 1;
        if (outcome === second) return -1;
        return isTie(outcome) && !known.has(outcome) ? 0 : undefined;
      },
    };
    const numbers = {
      expected: () => (signed ? "a positive number if the first item won, a negative number if the second won, or 0 for a tie"
        : "1 (the first won), 0.5 (a tie) or 0 (the second won); or 1, 0 and -1"),
      note: signed ? "Positive outcomes are read as a win of the first item, negative ones as a win of the second, and 0 as a tie."
        : "An outcome of 1 is read as a win of the first item, 0 as a win of the second, and 0.5 as a tie.",
      read: row => {
        const value = number(row.outcome);
        if (Number.isNaN(value)) return undefined;
        if (signed) return Math.sign(value);
        return { 0: -1, 0.5: 0, 1: 1 }[value];
      },
    };
    const points = {
      expected: () => "the points of both items, such as 3-1",
      note: "Outcomes are read as points, those of the first item before those of the second. The item with more points won.",
      read: ({ outcome }) => {
        const both = outcome.replace(/½|1\/2/g, "0.5").match(/^(\d+(?:\.\d+)?) *[-–:] *(\d+(?:\.\d+)?)$/);
        return both ? Math.sign(both[1] - both[2]) : undefined;
      },
    };
    const pairs = [titles.map(title => title.toLowerCase()), ...SIDES];
    const sides = pairs.map(([one, other]) => ({
      expected: () => `${quote(one)}, ${quote(other)} or tie`,
      note: `The outcome ${quote(one)} is read as a win of the first item, and ${quote(other)} as a win of the second.`,
      read: ({ outcome }) => {
        const word = outcome.toLowerCase();
        if (word === one) return 1;
        if (word === other) return -1;
        return isTie(word) ? 0 : undefined;
      },
    }));
    return [names, numbers, points, ...sides];
  }

  /** The reading that fits all outcomes; an error names the first outcome that does not fit the best one. */
  function readOutcomes(entries, titles, separator) {
    const ways = readings(entries, titles, separator).map(way => {
      const values = entries.map(way.read);
      return { ...way, values, fits: values.filter(value => value !== undefined).length };
    });
    const most = Math.max(...ways.map(({ fits }) => fits));
    const best = ways.find(({ fits }) => fits === most);
    if (most < entries.length) {
      const row = entries[best.values.indexOf(undefined)];
      throw new TableError(`Line ${row.line}: the outcome ${quote(row.outcome)} is not clear. Write ${most ? best.expected(row) : ways[0].expected(row)}. Or choose another column for the outcome.`);
    }
    // A name of an item of the line is that item, whatever else it may mean.
    const other = best === ways[0] ? null : ways.find(({ fits, values }) => fits === most && values.some((value, k) => value !== best.values[k]));
    if (other) {
      const row = entries[best.values.findIndex((value, k) => value !== other.values[k])];
      throw new TableError(`Line ${row.line}: the outcome ${quote(row.outcome)} may mean a win of the first or of the second item. Write ${ways[0].expected(row)}.`);
    }
    return best;
  }

  /** The weight of a line: a number that is not negative. */
  function readWeight(text, line, separator) {
    const weight = toNumber(text, separator);
    if (!(weight >= 0 && weight <= 1e9)) throw new TableError(`Line ${line}: the weight ${quote(text)} is not a number from 0 to 1e9. Write how often this result occurred, or choose another column.`);
    return weight;
  }

  /** Comparisons from a text, with the columns as given, or guessed. */
  function readTable(text, chosen = {}) {
    const { rows, separator, width, composed } = splitTable(text);
    const headed = chosen.headed ?? hasHeader(rows);
    const titles = headed ? rows[0].cells.map((name, k) => name || `column ${k + 1}`)
      : Array.from({ length: width }, (_, k) => `column ${k + 1}`);
    const columns = { ...guessColumns(titles, headed), ...chosen.columns };
    const notes = composed ? ["Accented letters that consist of two characters are read as one character."] : [];
    const person = headed ? titles.find((title, k) => isPerson(title) && !Object.values(columns).includes(k)) : undefined;
    if (person) notes.push(`The column ${quote(person)} is not used, because this page treats all comparisons as independent. The report below uses it.`);
    const table = { titles, headed, columns, person, separator, notes };
    try {
      return { ...table, ...readComparisons(rows.slice(headed ? 1 : 0), table) };
    } catch (error) {
      error.table = table;  // so that the page can offer its columns
      throw error;
    }
  }

  function readComparisons(rows, { titles, columns, separator, notes }) {
    const twice = titles.find((title, k) => titles.indexOf(title) !== k);
    if (twice !== undefined) throw new TableError(`Line 1: two columns are called ${quote(twice)}. Rename or delete one of them.`);
    if (columns.first === columns.second) throw new TableError(`Both items are read from the column ${quote(titles[columns.first])}. Choose two different columns.`);
    let entries = rows.map(({ number, cells }) => ({
      line: number, first: cells[columns.first], second: cells[columns.second],
      outcome: columns.outcome === null ? "" : cells[columns.outcome],
      weight: columns.weight === null ? 1 : readWeight(cells[columns.weight], number, separator),
    }));
    for (const { line, first, second } of entries) {
      if (!first || !second) throw new TableError(`Line ${line} has no name for the ${first ? "second" : "first"} item. Write the name, or delete the line.`);
      if (first === second) throw new TableError(`Line ${line} compares ${quote(first)} with itself. Correct one of the names, or delete the line.`);
    }
    const leave = (test, reason) => {
      const gone = entries.filter(test);
      entries = entries.filter(entry => !test(entry));
      if (gone.length) notes.push(`Left out, because of ${reason}: line${gone.length > 1 ? "s" : ""} ${gone.slice(0, 5).map(({ line }) => line).join(", ")}${gone.length > 5 ? ` and ${gone.length - 5} more` : ""}.`);
    };
    leave(({ weight }) => weight === 0, "a weight of 0");
    if (columns.outcome !== null) leave(({ outcome }) => !outcome, "an empty outcome");
    if (!entries.length) throw new TableError("The table has no comparison. Paste one line for each comparison, such as: Ann, Bob, Ann");
    let values = entries.map(() => 1);
    if (columns.outcome === null) notes.push("The first item of each line is read as the winner.");
    else {
      const reading = readOutcomes(entries, [titles[columns.first], titles[columns.second]], separator);
      notes.push(reading.note);
      values = reading.values;
    }
    const items = [...new Set(entries.flatMap(({ first, second }) => [first, second]))];
    if (items.length > MAX_ITEMS) throw new TableError(`The table has ${items.length} items, but this page can handle at most ${MAX_ITEMS}. For larger tables, install the package and run: ${REPORT}`);
    noteSimilarNames(items, notes);
    const place = new Map(items.map((name, k) => [name, k]));
    const comparisons = entries.map(({ first, second, weight }, k) => ({ i: place.get(first), j: place.get(second), y: values[k], weight }));
    return { items, comparisons };
  }

  /** Note names that differ only in case or blanks: they are different items, perhaps by a slip. */
  function noteSimilarNames(items, notes) {
    const seen = new Map();
    for (const name of items) {
      const plain = name.toLowerCase().replace(/\s+/g, " ");
      if (seen.has(plain)) notes.push(`${quote(seen.get(plain))} and ${quote(name)} are treated as two different items. If they are the same item, use one spelling.`);
      else seen.set(plain, name);
    }
  }

  // ---- The mathematics

  const Z = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const MAX_STEPS = 200;
  const FALLBACK = 0.1;  // the penalty where no maximum of the likelihood exists

  /** Results of each pair of items, added up: weights of { first won, tie, second won }. */
  function addUp(comparisons) {
    const pairs = new Map();
    for (const { i, j, y, weight } of comparisons) {
      const low = Math.min(i, j);
      const high = Math.max(i, j);
      const key = `${low} ${high}`;
      if (!pairs.has(key)) pairs.set(key, { i: low, j: high, first: 0, tie: 0, second: 0 });
      const result = ["second", "tie", "first"][(i < j ? y : -y) + 1];
      pairs.get(key)[result] += weight;
    }
    return [...pairs.values()];
  }

  /** The items that can be reached from a start along edges, as a set. */
  function reachable(start, edges) {
    const found = new Set([start]);
    for (const k of found) edges[k].forEach(next => found.add(next));  // a set is walked as it grows
    return found;
  }

  /** Groups of items that are connected by comparisons, the largest first. */
  function componentsOf(n, pairs) {
    const edges = Array.from({ length: n }, () => []);
    for (const { i, j } of pairs) {
      edges[i].push(j);
      edges[j].push(i);
    }
    const groups = [];
    const seen = new Set();
    for (let k = 0; k < n; k++) {
      if (seen.has(k)) continue;
      const group = [...reachable(k, edges)].sort((a, b) => a - b);
      group.forEach(item => seen.add(item));
      groups.push(group);
    }
    return groups.sort((a, b) => b.length - a.length);
  }

  /** Groups, unbeaten items, parts that never lose to the rest of their group, and whether a maximum exists.

      The likelihood of Bradley and Terry has a maximum if and only if no part of a group never loses to the rest of it,
      where a tie is half a win of each (Ford 1957). Davidson's has one if, in addition, preferences and ties cannot be
      told apart: no scores u have u_i - u_j >= 1 wherever i won and |u_i - u_j| <= 1 in all ties. That is so if and
      only if a cycle of comparisons, followed from winners to losers, has more preferences than ties. */
  function diagnose(n, pairs, tiesModeled) {
    const groups = componentsOf(n, pairs);
    const notLost = Array.from({ length: n }, () => []);  // edges to items that an item beat or tied with
    const lost = Array.from({ length: n }, () => 0);
    const other = Array.from({ length: n }, () => 0);
    for (const { i, j, first, tie, second } of pairs) {
      if (first || tie) notLost[i].push(j);
      if (second || tie) notLost[j].push(i);
      lost[i] += second;
      lost[j] += first;
      other[i] += tie;
      other[j] += tie;
    }
    const unbeaten = lost.flatMap((weight, k) => (weight || other[k] ? [] : [k]));
    const parts = groups.filter(group => !isStronglyConnected(group, notLost)).map(group => endsOf(group, notLost));
    const ties = tiesModeled && pairs.some(({ tie }) => tie);
    const separable = ties && !hasPreferenceCycle(n, pairs);
    return { groups, unbeaten, parts, separable, exists: !parts.length && !separable };
  }

  /** Whether each item of a group can be reached from each other one. */
  function isStronglyConnected(group, edges) {
    const back = edges.map(() => []);
    for (const k of group) edges[k].forEach(next => back[next].push(k));
    return [edges, back].every(ways => reachable(group[0], ways).size === group.length);
  }

  /** A part of a group that never loses to or ties with the rest, and one that never wins against or ties with it. */
  function endsOf(group, edges) {
    const reach = new Map(group.map(k => [k, reachable(k, edges)]));
    const from = (k, l) => reach.get(k).has(l);
    const top = group.find(k => group.every(l => !from(l, k) || from(k, l)));
    const bottom = group.find(k => group.every(l => !from(k, l) || from(l, k)));
    const around = k => group.filter(l => from(k, l) && from(l, k));
    return { top: around(top), bottom: around(bottom) };
  }

  /** Whether a cycle has more preferences (-1 each) than ties (+1): a negative cycle, by Bellman and Ford. */
  function hasPreferenceCycle(n, pairs) {
    const edges = pairs.flatMap(({ i, j, first, tie, second }) => [[i, j, first], [j, i, second]]
      .filter(([, , won]) => won || tie).map(([from, to, won]) => [from, to, won ? -1 : 1]));
    const distance = new Float64Array(n);
    for (let round = 0; round < n; round++) {
      let changed = false;
      for (const [from, to, length] of edges) {
        if (distance[from] + length < distance[to]) {
          distance[to] = distance[from] + length;
          changed = true;
        }
      }
      if (!changed) return false;
    }
    return true;
  }

  /** Davidson's model at a score difference d, with t = log(nu):
      P(first) : P(tie) : P(second) = e^(d/2) : nu : e^(-d/2). */
  function probabilities(d, t) {
    const top = Math.max(Math.abs(d) / 2, t);
    const first = Math.exp(d / 2 - top);
    const tie = Math.exp(t - top);
    const second = Math.exp(-d / 2 - top);
    const total = first + tie + second;
    return { first: first / total, tie: tie / total, second: second / total, logTotal: top + Math.log(total) };
  }

  /** Minus the log-likelihood, with the penalty alpha/2 |s|^2. */
  function objective({ pairs, alpha }, s, t) {
    let value = 0;
    for (const { i, j, first, tie, second } of pairs) {
      const d = s[i] - s[j];
      value += (first + tie + second) * probabilities(d, t).logTotal - ((first - second) * d) / 2;
      if (tie) value -= tie * t;
    }
    return value + (alpha / 2) * s.reduce((sum, score) => sum + score * score, 0);
  }

  /** Gradient and Hessian in (s, t). The likelihood does not change if all scores of a group move together, so a
      block of ones for each group makes the Hessian invertible; a step still adds nothing to the group's mean. */
  function derivatives({ pairs, alpha, groups }, s, t) {
    const n = s.length;
    const size = n + 1;
    const gradient = new Float64Array(size);
    const H = Array.from({ length: size }, () => new Float64Array(size));
    for (const { i, j, first, tie, second } of pairs) {
      const weight = first + tie + second;
      const p = probabilities(s[i] - s[j], t);
      const slope = (weight * (p.first - p.second) - (first - second)) / 2;
      const bend = weight * (p.first * p.second + (p.tie * (p.first + p.second)) / 4);
      const mixed = (-weight * p.tie * (p.first - p.second)) / 2;
      for (const [k, sign] of [[i, 1], [j, -1]]) {
        gradient[k] += sign * slope;
        H[k][k] += bend;
        H[k][n] += sign * mixed;
        H[n][k] += sign * mixed;
      }
      H[i][j] -= bend;
      H[j][i] -= bend;
      gradient[n] += weight * p.tie - tie;
      H[n][n] += weight * p.tie * (1 - p.tie);
    }
    for (let k = 0; k < n; k++) {
      gradient[k] += alpha * s[k];
      H[k][k] += alpha;
    }
    for (const group of groups) {
      const block = group.reduce((sum, k) => sum + H[k][k], 0) / group.length ** 2;
      for (const k of group) for (const l of group) H[k][l] += block;
    }
    return { gradient, H };
  }

  /** The factor L of a positive definite matrix A = L L'. */
  function cholesky(A) {
    const L = A.map(row => new Float64Array(row.length));
    for (let i = 0; i < A.length; i++) {
      for (let j = 0; j <= i; j++) {
        let rest = A[i][j];
        for (let k = 0; k < j; k++) rest -= L[i][k] * L[j][k];
        if (i !== j) L[i][j] = rest / L[j][j];
        else if (rest > 0) L[i][i] = Math.sqrt(rest);
        else throw new TableError("The scores could not be computed because rounding errors are too large. Choose a penalty.");
      }
    }
    return L;
  }

  /** The solution x of L L' x = b. */
  function solve(L, b) {
    const x = Float64Array.from(b);
    for (let i = 0; i < x.length; i++) {
      for (let k = 0; k < i; k++) x[i] -= L[i][k] * x[k];
      x[i] /= L[i][i];
    }
    for (let i = x.length - 1; i >= 0; i--) {
      for (let k = i + 1; k < x.length; k++) x[i] -= L[k][i] * x[k];
      x[i] /= L[i][i];
    }
    return x;
  }

  /** The scores of highest penalized likelihood, by Newton's method with halved steps. */
  function maximize(problem, n) {
    const ties = problem.pairs.some(({ tie }) => tie);
    let s = new Float64Array(n);
    let t = ties ? 0 : -Infinity;
    let value = objective(problem, s, t);
    for (let count = 0; count < MAX_STEPS; count++) {
      const { gradient, H } = derivatives(problem, s, t);
      if (!ties) H[n][n] = 1;  // nu stays 0: its row and column are those of the identity
      const factor = cholesky(H);
      const step = solve(factor, gradient);
      const length = Math.max(...step.map(Math.abs));
      let share = 1;
      let next;
      do {
        const moved = share;
        const scores = s.map((score, k) => score - moved * step[k]);
        const tie = t - moved * step[n];
        next = { s: scores, t: tie, value: objective(problem, scores, tie) };
        share /= 2;
      } while (!(next.value <= value + 1e-13 * Math.abs(value)) && share > 1e-10);
      ({ s, t, value } = next);
      if (length < 1e-9) return { s, t, covariance: covariance(problem, factor, n) };
    }
    throw new TableError(`The computation did not converge in ${MAX_STEPS} steps. Choose a larger penalty.`);
  }

  /** The covariance of the scores less the mean of their group, from the inverse of the Hessian. */
  function covariance({ groups }, factor, n) {
    const V = Array.from({ length: n }, (_, k) => {
      const unit = new Float64Array(n + 1);
      unit[k] = 1;
      return solve(factor, unit);
    });
    const C = V.map(() => new Float64Array(n));
    for (const group of groups) {
      const mean = k => group.reduce((sum, l) => sum + V[k][l], 0) / group.length;
      const means = new Map(group.map(k => [k, mean(k)]));
      const whole = group.reduce((sum, k) => sum + means.get(k), 0) / group.length;
      for (const k of group) for (const l of group) C[k][l] = V[k][l] - means.get(k) - means.get(l) + whole;
    }
    return C;
  }

  /** Fit a model to comparisons { i, j, y, weight } of n items.

      model: "davidson" (ties have a probability of their own) or "bradley-terry" (a tie is half a win of each).
      alpha: the penalty; 0 is maximum likelihood, replaced by FALLBACK where no maximum exists.
      Returns scores and standard errors, which are relative to the mean of the item's group; nu; the covariance;
      the penalty that was used; the diagnosis; and the counts of each item. */
  function fit(n, comparisons, model = "davidson", alpha = 0) {
    let pairs = addUp(comparisons);
    const counts = Array.from({ length: n }, () => ({ won: 0, tied: 0, lost: 0 }));
    for (const { i, j, first, tie, second } of pairs) {
      counts[i].won += first;
      counts[j].won += second;
      counts[i].lost += second;
      counts[j].lost += first;
      counts[i].tied += tie;
      counts[j].tied += tie;
    }
    const modeled = model === "davidson";
    if (modeled && pairs.every(({ first, second }) => !first && !second))
      throw new TableError("All comparisons are ties, so Davidson's model cannot be fitted. Choose to count ties as half a win for each item.");
    const diagnosis = diagnose(n, pairs, modeled);
    if (!modeled) pairs = pairs.map(pair => ({ ...pair, first: pair.first + pair.tie / 2, tie: 0, second: pair.second + pair.tie / 2 }));
    const used = alpha || (diagnosis.exists ? 0 : FALLBACK);
    const { s, t, covariance: C } = maximize({ pairs, alpha: used, groups: diagnosis.groups }, n);
    return {
      scores: [...s], errors: C.map((row, k) => Math.sqrt(Math.max(0, row[k]))), covariance: C.map(row => [...row]),
      nu: Math.exp(t), alpha: used, diagnosis, counts,
    };
  }

  /** The score difference of two items, its standard error, and the probabilities of outcomes. */
  function compare({ scores, covariance: C, nu }, i, j) {
    const d = scores[i] - scores[j];
    const error = Math.sqrt(Math.max(0, C[i][i] + C[j][j] - 2 * C[i][j]));
    const share = x => 1 / (1 + Math.exp(-x));
    return { d, error, tie: probabilities(d, Math.log(nu)).tie, win: share(d), low: share(d - Z * error), high: share(d + Z * error) };
  }

  // ---- The page

  const EXAMPLE = `first,second,outcome
Brie,Comté,Comté
Comté,Edam,Comté
Edam,Feta,Feta
Feta,Gouda,tie
Gouda,Brie,Gouda
Brie,Edam,Brie
Comté,Feta,tie
Edam,Gouda,Gouda
Feta,Brie,Feta
Gouda,Comté,Comté
Comté,Brie,tie
Edam,Comté,Comté
Feta,Edam,Edam
Gouda,Feta,Gouda
Brie,Gouda,Gouda
Edam,Brie,Edam
Feta,Comté,Comté
Gouda,Edam,Gouda
Brie,Feta,Brie
Comté,Gouda,Gouda
`;
  const MODELS = [["davidson", "are modeled (Davidson)"], ["bradley-terry", "count as half a win for each item (Bradley–Terry)"]];
  const PENALTIES = [["0", "none (maximum likelihood)"], ["0.01", "0.01"], ["0.1", "0.1 (weak)"], ["1", "1 (strong)"]];
  const ROW = 24;  // pixels of the picture's height for an item
  const HEAD = 44;  // pixels above the first item, for the axis

  function make(kind, attributes, parent, text) {
    const node = /^(svg|g|path|line|circle|text|title)$/.test(kind)
      ? document.createElementNS("http://www.w3.org/2000/svg", kind) : document.createElement(kind);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  /** A number as readers see it: a minus sign, and no −0.00. */
  function number(x, digits = 2) {
    const text = Math.abs(x).toFixed(digits);
    return (x < 0 && Number(text) !== 0 ? "−" : "") + text;
  }

  const percent = x => `${(100 * x).toFixed(0)} %`;
  const range = (low, high) => `${number(low)} to ${number(high)}`;
  const count = x => String(Math.round(1000 * x) / 1000);
  const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

  /** Numbers of the items of each group, the highest score first. */
  const ranked = ({ diagnosis, scores }) => diagnosis.groups.map(group => [...group].sort((a, b) => scores[b] - scores[a]));

  /** Sentences on what the comparisons determine, and what they do not. */
  function findings({ items, comparisons, result, asked }) {
    const { groups, unbeaten, parts, separable } = result.diagnosis;
    const names = numbers => some(numbers.map(k => items[k]));
    const total = comparisons.reduce((sum, { weight }) => sum + weight, 0);
    const ties = comparisons.reduce((sum, { y, weight }) => sum + (y ? 0 : weight), 0);
    const found = [`${plural(total, "comparison")} of ${items.length} items, ${ties ? `including ${plural(ties, "tie")}` : "without ties"}.`];
    if (groups.length > 1) {
      found.push(`The items form ${groups.length} groups that never meet: ${groups.slice(0, 4).map(names).join("; ")}${groups.length > 4 ? "; …" : ""}. You can compare scores only within a group. To connect the groups, add comparisons between them.`);
    }
    if (unbeaten.length) found.push(`${names(unbeaten)} won every comparison.`);
    for (const { top, bottom } of parts) {
      if (top.length === 1 && unbeaten.includes(top[0])) continue;
      found.push(top.length <= bottom.length ? `${names(top)} never lost to or tied with the rest of the group.`
        : `${names(bottom)} never won against or tied with the rest of the group.`);
    }
    if (separable) found.push("There are scores for which every winner is at least one step above the loser, and the items of every tie are at most one step apart.");
    if (result.alpha !== asked) {
      found.push(`Therefore the maximum likelihood scores are infinite. The page shows scores with a penalty of ${result.alpha} instead. Their size depends on the penalty; more comparisons would determine it.`);
    } else if (result.alpha && (parts.length || separable)) {
      found.push("Therefore the size of the largest scores depends on the penalty; more comparisons would determine it.");
    }
    if (result.nu) found.push(`Two items with equal scores tie with probability ${percent(result.nu / (2 + result.nu))}.`);
    return found;
  }

  /** A label of the picture, shortened to the available width; the number before it keeps shortened names distinct. */
  function label(parent, text, full, room, place) {
    const node = make("text", place, parent, text);
    const letters = [...text];
    while (letters.length > 3 && node.getComputedTextLength() > room) {
      letters.pop();
      node.textContent = `${letters.join("").trimEnd()}…`;
    }
    make("title", {}, node, full);
  }

  /** Round values of an axis, about five of them. */
  function ticks(low, high) {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(k => k * power).find(size => size >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
    return found.map(x => [x, number(x, Math.max(0, -Math.floor(Math.log10(step))))]);
  }

  /** The scores as dots with 95 % intervals, one row per item, as wide as the page. */
  function draw(parent, { items, result }) {
    const width = Math.min(720, parent.clientWidth || 720);
    const orders = ranked(result);
    const groups = orders.length;
    const height = HEAD + ROW * (items.length + (groups > 1 ? groups : 0)) + 6;
    const ends = items.flatMap((_, k) => [-1, 1].map(sign => result.scores[k] + sign * Z * result.errors[k]));
    const [low, high] = [Math.min(...ends, -0.1), Math.max(...ends, 0.1)];
    const left = 0.38 * width;
    const x = score => left + 10 + ((score - low) / (high - low)) * (width - left - 24);
    const best = orders[0].slice(0, 3).map(k => `${items[k]} ${number(result.scores[k])} (${range(ends[2 * k], ends[2 * k + 1])})`);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `Scores with 95 % intervals. The highest: ${best.join(", ")}. The table below has all of them.` });
    parent.replaceChildren(svg);
    make("text", { x: width, y: 14, "text-anchor": "end" }, svg, groups > 1 ? "score (the mean of each group is 0)" : "score (the mean is 0)");
    for (const [value, text] of ticks(low, high)) {
      make("line", { class: value === 0 ? "zero" : "grid", x1: x(value), x2: x(value), y1: HEAD - 6, y2: height }, svg);
      make("text", { x: x(value), y: HEAD - 12, "text-anchor": "middle" }, svg, text);
    }
    let y = HEAD;
    orders.forEach((order, group) => {
      if (groups > 1) {
        make("text", { class: "group", x: 0, y: y + 17 }, svg, `Group ${group + 1}`);
        y += ROW;
      }
      order.forEach((k, rank) => {
        label(svg, `${rank + 1}  ${items[k]}`, items[k], left, { x: 0, y: y + 17 });
        make("line", { class: "interval", x1: x(ends[2 * k]), x2: x(ends[2 * k + 1]), y1: y + 12, y2: y + 12 }, svg);
        make("circle", { class: "score", cx: x(result.scores[k]), cy: y + 12, r: 5 }, svg);
        y += ROW;
      });
    });
  }

  /** The rows of the table: name, score, interval and counts of each item, under a heading for each group. */
  function fillTable(table, { items, result }) {
    const orders = ranked(result);
    const bodies = orders.map((order, group) => {
      const body = make("tbody", {});
      if (orders.length > 1) make("th", { colspan: 6, scope: "rowgroup" }, make("tr", {}, body), `Group ${group + 1}`);
      for (const k of order) {
        const row = make("tr", {}, body);
        const [score, error] = [result.scores[k], result.errors[k]];
        const { won, tied, lost } = result.counts[k];
        make("th", { scope: "row" }, row, items[k]);
        for (const text of [number(score), range(score - Z * error, score + Z * error), count(won), count(tied), count(lost)]) make("td", {}, row, text);
      }
      return body;
    });
    table.replaceChildren(table.caption, table.tHead, ...bodies);
  }

  /** What the scores say about two items. */
  function comparison({ items, result }, i, j) {
    if (i === j) return "Choose two different items.";
    if (!result.diagnosis.groups.some(group => group.includes(i) && group.includes(j)))
      return `${quote(items[i])} and ${quote(items[j])} are in groups that never meet, so they cannot be compared.`;
    const { d, error, tie, win, low, high } = compare(result, i, j);
    const decided = result.nu ? "of the comparisons that are not ties" : "of the comparisons";
    const verdict = low > 0.5 || high < 0.5 ? `The interval excludes 50 %, so these comparisons show that ${quote(items[d > 0 ? i : j])} is better.`
      : "The interval includes 50 %, so these comparisons do not show which is better.";
    return `${quote(items[i])} beats ${quote(items[j])} in ${percent(win)} ${decided} (95 % interval ${percent(low)} to ${percent(high)})`
      + `${result.nu ? `; ${percent(tie)} of all are ties` : ""}. The score difference is ${number(d)} with a standard error of ${number(error)}. ${verdict}`;
  }

  /** The command that reports on the same columns of a file. */
  function command({ titles, columns, headed, person }) {
    if (!headed) return `${REPORT}   # first add a line with the column names, such as first,second,outcome`;
    const quoted = text => (/^[\w.-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
    const outcome = columns.outcome === null ? "first won" : titles[columns.outcome];
    const judge = person ? ` -p judge ${quoted(person)}` : "";
    return `${REPORT} -p first ${quoted(titles[columns.first])} -p second ${quoted(titles[columns.second])} -p outcome ${quoted(outcome)}${judge}`;
  }

  /** A list to choose from, with its label. */
  function picker(parent, name, text, options, then) {
    const row = make("label", {}, parent);
    make("span", {}, row, text);
    const list = make("select", { name, "aria-label": text }, row);
    const fill = (entries, value) => {
      list.replaceChildren(...entries.map(([key, shown]) => make("option", { value: key }, null, shown)));
      if (value !== undefined) list.value = value;
    };
    fill(options);
    list.addEventListener("change", then);
    return { list, fill };
  }

  /** Build the calculator in a box of the page; `state` is the last table that could be read. */
  function start(box) {
    box.replaceChildren();
    box.classList.add("scores-live");
    let state = null;

    const text = make("textarea", { id: "scores-text", rows: 9, spellcheck: "false", autocomplete: "off", wrap: "off" });
    make("label", { for: "scores-text" }, box, "Comparisons, one per line: two items, the winner, and optionally a weight");
    box.append(text);
    const buttons = make("div", { class: "scores-buttons" }, box);
    const button = (name, then) => make("button", { type: "button" }, buttons, name).addEventListener("click", then);
    button("Compute scores", () => update());
    button("Clear", () => { load(""); text.focus(); });
    button("Show the example", () => load(EXAMPLE));
    const open = make("label", {}, buttons, "or open a file ");
    const file = make("input", { type: "file", accept: ".csv,.tsv,.txt,text/plain,text/csv" }, open);

    const wrong = make("p", { class: "scores-error", role: "alert" }, box);
    const settings = make("div", { class: "scores-settings" }, box);
    const headed = picker(settings, "headed", "The first line", [["true", "names the columns"], ["false", "is a comparison"]], () => update({ headed: headed.list.value === "true" }));
    const columns = Object.fromEntries([["first", "First item"], ["second", "Second item"], ["outcome", "Outcome"], ["weight", "Weight"]]
      .map(([role, name]) => [role, picker(settings, role, name, [], () => update(chosenColumns()))]));
    const model = picker(settings, "model", "Ties", MODELS, () => update(chosenColumns()));
    const penalty = picker(settings, "penalty", "Penalty", PENALTIES, () => update(chosenColumns()));

    const answer = make("div", { class: "scores-answer" }, box);
    const summary = make("div", { role: "status" }, answer);
    const picture = make("div", { class: "scores-picture" }, answer);
    const pair = make("div", { class: "scores-pair" }, answer);
    const say = () => { said.textContent = comparison(state, Number(one.list.value), Number(other.list.value)); };
    const one = picker(pair, "one", "Compare", [], say);
    const other = picker(pair, "other", "with", [], say);
    const said = make("p", { "aria-live": "polite" }, answer);
    const table = make("table", {}, make("div", { class: "explorer-scroll" }, answer));
    make("caption", {}, table, "Scores, highest first");
    const head = make("tr", {}, make("thead", {}, table));
    for (const name of ["item", "score", "95 % interval", "won", "tied", "lost"]) make("th", { scope: "col" }, head, name);
    make("p", {}, answer, "To write the full report, save the table as FILE and run:");
    const line = make("code", {}, make("pre", {}, answer));

    function chosenColumns() {
      const chosen = Object.entries(columns).map(([role, { list }]) => [role, list.value === "" ? null : Number(list.value)]);
      return { headed: headed.list.value === "true", columns: Object.fromEntries(chosen) };
    }

    function showColumns({ titles, headed: named, columns: numbers }) {
      headed.list.value = String(named);
      const options = titles.map((title, k) => [String(k), title]);
      const none = { outcome: [["", "none (the first item won)"]], weight: [["", "none (each line counts once)"]] };
      for (const [role, { fill }] of Object.entries(columns)) fill([...(none[role] ?? []), ...options], String(numbers[role] ?? ""));
    }

    function load(content) {
      text.value = content;
      file.value = "";
      update();
    }

    /** Read the table and show the result, or the error. */
    function update(chosen) {
      answer.hidden = true;
      wrong.textContent = "";
      text.removeAttribute("aria-invalid");
      settings.hidden = !text.value.trim();
      if (settings.hidden) return;
      try {
        const read = readTable(text.value, chosen);
        showColumns(read);
        const asked = Number(penalty.list.value);
        state = { ...read, asked, result: fit(read.items.length, read.comparisons, model.list.value, asked) };
      } catch (error) {
        if (!(error instanceof TableError)) throw error;
        if (error.table) showColumns(error.table);
        wrong.textContent = error.message;
        text.setAttribute("aria-invalid", "true");
        return;
      }
      show();
    }

    function show() {
      answer.hidden = false;
      const list = make("ul", {});
      [...findings(state), ...state.notes].forEach(sentence => make("li", {}, list, sentence));
      summary.replaceChildren(list);
      draw(picture, state);
      const order = ranked(state.result).flat();
      const options = order.map(k => [String(k), state.items[k]]);
      one.fill(options, String(order[0]));
      other.fill(options, String(order[1]));
      say();
      fillTable(table, state);
      line.textContent = command(state);
    }

    text.addEventListener("change", () => update());  // typed lines are read when the reader leaves the box
    text.addEventListener("input", event => { if (event.inputType?.startsWith("insertFrom")) update(); });
    file.addEventListener("change", async () => {
      if (!file.files.length) return;
      text.value = await file.files[0].text();
      update();
    });
    let width = 0;
    // Drawn in the next frame: a change of size within the observer's call would be reported as an error.
    new ResizeObserver(() => {
      const now = picture.clientWidth;
      if (!now || now === width) return;
      width = now;
      requestAnimationFrame(() => { if (state && !answer.hidden) draw(picture, state); });
    }).observe(picture);
    load(EXAMPLE);
  }

  if (typeof module !== "undefined") module.exports = { EXAMPLE, command, compare, fit, readTable };
  else document.querySelectorAll("#scores-calculator").forEach(start);
})();
