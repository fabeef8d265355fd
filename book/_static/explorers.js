/* Explorers: figures of the book that a reader moves. Plain JavaScript and SVG; nothing is loaded.

     <div class="explorer" data-explorer="KIND"><script type="application/json">DATA</script>
       <div class="explorer-static">the static figure</div></div>

   preflearn_book.runner.explorer writes this. A further kind is a function (box, data) in `explorers`, built from the
   tools below, and a line in src/preflearn_book/runner/explorers.py that says what its data are. */
(function () {
  "use strict";

  // ---- Mathematics: no page needed, the tests run it in node

  const dot = (a, b) => a.reduce((sum, x, k) => sum + x * b[k], 0);

  /** The place of the largest value of a function with one peak: a grid, then golden sections. */
  function maximise(f, low, high, steps) {
    let best = low, top = -Infinity;
    const step = (high - low) / steps, golden = (Math.sqrt(5) - 1) / 2;
    for (let k = 0; k <= steps; k++) {
      const value = f(low + k * step);
      if (value > top) [top, best] = [value, low + k * step];
    }
    let [a, b] = [Math.max(low, best - step), Math.min(high, best + step)];
    for (let k = 0; k < 80; k++) {
      const c = b - golden * (b - a), d = a + golden * (b - a);
      if (f(c) < f(d)) a = c; else b = d;
    }
    return (a + b) / 2;
  }

  /** Rows after elimination with pivots, and the rank of the first n columns. */
  function eliminate(rows, n) {
    const A = rows.map(row => row.slice());
    let rank = 0;
    for (let column = 0; column < n && rank < A.length; column++) {
      let pivot = rank;
      for (let i = rank; i < A.length; i++) if (Math.abs(A[i][column]) > Math.abs(A[pivot][column])) pivot = i;
      if (Math.abs(A[pivot][column]) < 1e-9) continue;
      [A[rank], A[pivot]] = [A[pivot], A[rank]];
      const head = A[rank].map(x => x / A[rank][column]);
      A[rank] = head;
      A.forEach((row, i) => { if (i !== rank) A[i] = row.map((x, k) => x - row[column] * head[k]); });
      rank++;
    }
    return { A, rank };
  }

  /** Of n items and pairs (first, second) with labels y: B, its rank, components, least-squares scores f. */
  function comparisonGraph(n, pairs, y) {
    const unit = k => Array.from({ length: n }, (_, j) => +(j === k));
    const B = pairs.map(([first, second]) => unit(first).map((x, j) => x - unit(second)[j]));
    const component = Array.from({ length: n }, (_, j) => j);
    pairs.forEach(([a, b]) => {
      const [kept, gone] = [component[a], component[b]].sort((p, q) => p - q);
      component.forEach((c, j) => { if (c === gone) component[j] = kept; });
    });
    // B'B f = B'y, and the scores of each component sum to zero: add the sum over j's component to row j.
    const rows = component.map((c, j) => {
      const row = component.map((other, k) => dot(B.map(r => r[j]), B.map(r => r[k])) + (other === c ? 1 : 0));
      return [...row, dot(B.map(r => r[j]), y)];
    });
    const f = eliminate(rows, n).A.map(row => row[n]);
    const names = [...new Set(component)];
    return { B, f, Bf: B.map(row => dot(row, f)), rank: eliminate(B, n).rank,
             component: component.map(c => names.indexOf(c)), count: names.length };
  }

  /** What two programs see of a direction: w = (cos, sin) of an angle are weights of the features as they
      were. On data whose second feature is multiplied by `stretch`, the same ranking function has the
      weights (cos, sin / stretch); s and t are for that vector made a unit vector. */
  function marginProblem(preferences, ties) {
    const worst = (angle, stretch) => {
      const w = [Math.cos(angle), Math.sin(angle)], length = Math.hypot(w[0], w[1] / stretch);
      let s = Infinity, t = -Infinity, preference = 0, tie = 0;
      preferences.forEach((d, k) => { if (dot(w, d) < s) [s, preference] = [dot(w, d), k]; });
      ties.forEach((d, k) => { if (Math.abs(dot(w, d)) > t) [t, tie] = [Math.abs(dot(w, d)), k]; });
      const mu = s > t ? (s - t) / (s + t) : (s - t) / (Math.abs(s) + t || 1);
      return { s: s / length, t: t / length, ratio: s / t, mu, gap: (s - t) / length, preference, tie };
    };
    // Directions with s > t form a convex cone: its middle, and how far it reaches.
    const grid = Array.from({ length: 7200 }, (_, k) => (k * Math.PI) / 3600);
    const good = grid.filter(angle => worst(angle, 1).gap > 0);
    const middle = Math.atan2(...["sin", "cos"].map(f => good.reduce((sum, a) => sum + Math[f](a), 0)));
    const reach = Math.max(0, ...good.map(a => Math.abs(near(a, middle) - middle))) + Math.PI / 3600;
    const best = key => stretch => good.length
      ? maximise(a => worst(a, stretch)[key], middle - reach, middle + reach, 2000) : null;
    return { worst, middle, reach, lp: best("mu"), qp: best("gap") };
  }

  /** Scores that are more than a threshold apart for preferences, and at most the threshold apart for ties. Each of the pairs
      (first, second) of n items has the label 1, -1 or 0, or null where there is no answer. `cycles` are the climbing
      cycles, the one with the fewest ties per preference first; `ratio` is the greatest s/t. */
  function semiorder(n, pairs, y) {
    // Steps [from, to, pair]: from the worse item to the better one, and along ties both ways.
    const ways = { 1: ([a, b]) => [[b, a]], "-1": ([a, b]) => [[a, b]], 0: ([a, b]) => [[a, b], [b, a]], null: () => [] };
    const steps = pairs.flatMap((pair, i) => ways[y[i]](pair).map(way => [...way, i])), cycles = [];
    const walk = (items, used) => steps.forEach(([from, to, i]) => {
      if (from !== items[items.length - 1] || used.includes(i)) return;
      if (to > items[0] && !items.includes(to)) walk([...items, to], [...used, i]);
      const all = [...used, i], preferences = all.filter(j => y[j]).length;
      if (to === items[0] && preferences) cycles.push({ items, pairs: all, preferences, ties: all.length - preferences });
    });
    for (let start = 0; start < n; start++) walk([start], []);  // the smallest item of a cycle is the first
    cycles.sort((a, b) => a.ties * b.preferences - b.ties * a.preferences || a.items.length - b.items.length);
    const ratio = cycles.length ? cycles[0].ties / cycles[0].preferences : Infinity;

    /** If the ratio is above 1: scores from 0 with differences of at most t for ties, and the greatest s/t, or 2 if there is none. */
    const scores = t => {
      const f = Array(n).fill(0), s = (Number.isFinite(ratio) ? ratio : 2) * t;
      for (let round = 0; round < n; round++)
        for (const [from, to, i] of steps) f[to] = Math.max(f[to], f[from] + (y[i] ? s : -t));
      return f;
    };
    return { cycles, ratio, fits: ratio > 1, scores };
  }

  /** An angle by whole turns moved to within half a turn of another one. */
  const near = (angle, other) => angle - 2 * Math.PI * Math.round((angle - other) / (2 * Math.PI));

  /** Bias and scores at C: lambda beta and lambda u are linear in lambda = 1/C between knots. */
  function pathAt(data, C) {
    const lam = data.lambda, last = lam.length - 1;
    const at = Math.min(Math.max(1 / C, lam[last]), lam[0]);
    let k = 0;
    while (k < last - 1 && lam[k + 1] > at) k++;
    const share = last ? (lam[k] - at) / (lam[k] - lam[k + 1]) : 0;
    const mix = (a, b) => ((1 - share) * lam[k] * a + (last ? share * lam[k + 1] * b : 0)) / at;
    const next = Math.min(k + 1, last);
    const scores = data.scores[k].map((u, j) => mix(u, data.scores[next][j]));
    return { beta: mix(data.bias[k], data.bias[next]), scores };
  }

  /** Every C at which the bias is zero. */
  function zeros(data) {
    const F = data.lambda.map((lam, k) => lam * data.bias[k]), found = [];
    for (let k = 0; k + 1 < F.length; k++)
      if (F[k] * F[k + 1] < 0)
        found.push(1 / (data.lambda[k] + ((data.lambda[k + 1] - data.lambda[k]) * F[k]) / (F[k] - F[k + 1])));
    return found;
  }

  /** The ranking machine along its path: coefficients of lambda f on the items are linear between knots. */
  function rankingPath(data) {
    const lam = data.lambda, last = lam.length - 1;
    const kernel = (a, b) => Math.exp(-data.gamma * ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2));
    const rows = points => points.map(point => data.items.map(item => kernel(point, item)));
    const own = rows(data.items), others = rows(data.valid);
    const differences = (f, pairs) => pairs.map(([better, worse]) => f[better] - f[worse]);
    const wrong = z => z.filter(x => !(x > 1e-9)).length / z.length;

    function at(value) {
      const now = Math.min(Math.max(value, lam[last]), lam[0]);
      let [k, end] = [0, last];
      while (end - k > 1) {
        const middle = (k + end) >> 1;
        if (lam[middle] >= now) k = middle; else end = middle;
      }
      const share = end > k ? (lam[k] - now) / (lam[k] - lam[end]) : 0;
      const weights = data.coefficients[k].map((c, j) => ((1 - share) * c + share * data.coefficients[end][j]) / now);
      const scores = own.map(row => dot(row, weights)), z = differences(scores, data.pairs);
      const near = 1e-5 * Math.max(1, ...z.map(Math.abs)), ids = keep => z.flatMap((x, i) => (keep(x) ? [i] : []));
      return { lambda: now, weights, scores, margins: z, inside: ids(x => x < 1 - near), on: ids(x => Math.abs(x - 1) <= near),
               beyond: ids(x => x > 1 + near), training: wrong(z),
               validation: wrong(differences(others.map(row => dot(row, weights)), data.valid_pairs)) };
    }

    // Whole steps 0 to 400, even on a logarithmic scale, reach both ends.
    const low = Math.log10(lam[last]), range = Math.log10(lam[0]) - low;
    const steps = Array.from({ length: 401 }, (_, k) => (k === 0 ? lam[last] : k === 400 ? lam[0] : 10 ** (low + (k / 400) * range)));
    const step = value => Math.round((400 * (Math.log10(value) - low)) / range);
    const knots = lam.map((value, k) => [value, own.map(row => dot(row, data.coefficients[k]))]);  // lambda, and lambda f on the items
    return { at, rows, steps, step, knots };
  }

  /** Ranking pursuit on a line: what a step has left over, and what each function would take from it next. */
  function rankingPursuit(data) {
    const column = (rows, k) => rows.map(row => row[k]), x = column(data.train, 0), query = column(data.train, 1), s = column(data.train, 2);
    const kernel = (a, c) => Math.exp(-data.gamma * (a - c) ** 2), gram = x.map(c => x.map(a => kernel(a, c)));
    const groups = [0, 1].map(q => query.flatMap((other, i) => (other === q ? [i] : []))), size = query.map(q => groups[q].length);
    const means = v => groups.map(ids => ids.reduce((sum, i) => sum + v[i], 0) / (ids.length || 1));
    const centred = v => { const mean = means(v); return v.map((a, i) => a - mean[query[i]]); };
    // u'(beta I + (1 - beta) L) v; L takes the mean of its query from each entry, times the query's size.
    const form = (beta, u, v) => beta * dot(u, v) + (1 - beta) * dot(centred(u).map((a, i) => a * size[i]), v);
    const curve = (m, p, places) => places.map(a =>
      data.basis[m].slice(0, p).reduce((sum, j, k) => sum + data.coefficients[m][p - 1][k] * kernel(a, x[j]), 0));

    function at(m, p) {
      const beta = data.mix[m], f = curve(m, p, x), residual = s.map((value, i) => value - f[i]), loss = form(beta, residual, residual);
      const gains = gram.map(k => { const norm = form(beta, k, k); return norm > 1e-12 ? form(beta, k, residual) ** 2 / norm : 0; });
      return { f, residual, means: means(residual), loss, gains, next: gains.indexOf(Math.max(...gains)) };
    }

    /** How much the mean of a query weighs in the loss, for 1 of deviations from it: one number a size. */
    const weights = m => [...new Set(groups.map(ids => ids.length))].filter(Boolean)
      .map(n => data.mix[m] / (data.mix[m] + (1 - data.mix[m]) * n));
    return { at, curve, weights };
  }

  /** Of the standard normal distribution: log Phi(u) and the hazard phi(u) / Phi(u), to about 1e-14. */
  function normal(u) {
    const t = Math.abs(u), half = Math.exp(-u * u / 2) / Math.sqrt(2 * Math.PI);
    if (t < 2.5) {
      let [term, sum] = [u, u];  // Phi = 1/2 + phi (u + u^3/3 + u^5/15 + ...)
      for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) { term *= u * u / k; sum += term; }
      const below = 0.5 + half * sum;
      return [Math.log(below), half / below];
    }
    let tail = t;  // phi(t) / Phi(-t), a continued fraction: the further out, the fewer parts
    for (let k = 8 + Math.ceil(400 / (t * t)); k > 0; k--) tail = t + k / tail;
    return u < 0 ? [-u * u / 2 - Math.log(Math.sqrt(2 * Math.PI) * tail), tail]
      : [Math.log1p(-half / tail), half / (1 - half / tail)];
  }

  const cdf = u => Math.exp(normal(u)[0]);
  const bell = (mean, std) => x => Math.exp(-(((x - mean) / std) ** 2) / 2) / (std * Math.sqrt(2 * Math.PI));

  /** Nodes t and weights for means under N(0, 1): equal steps, whose error falls exponentially. */
  const NODES = Array.from({ length: 241 }, (_, k) => (k - 120) / 10)
    .map(t => [t, bell(0, 1)(t) / 10]);

  /** Evidence, mean and standard deviation of the density N(x | mean, std^2) f(x), f from 0 to 1. */
  function tilted(mean, std, f) {
    const w = NODES.map(([t, weight]) => weight * f(mean + std * t)), Z = w.reduce((sum, x) => sum + x, 0);
    const at = NODES.reduce((sum, [t], k) => sum + t * w[k], 0) / Z;
    const spread = Math.sqrt(NODES.reduce((sum, [t], k) => sum + (t - at) ** 2 * w[k], 0) / Z);
    return { Z, mean: mean + std * at, std: std * spread };
  }

  /** Two players with independent scores N(mean, std^2); the first won, which had the probability
      Phi(s1 - s2). The prior, the exact posterior, and the factorised Gaussians of EP and of reverse-KL. */
  function oneMatch(mean, std) {
    const v = std.map(x => x * x), V = v[0] + v[1], mu = mean[0] - mean[1], sign = [1, -1];
    /** Two independent Gaussians; `again` is the probability that the first wins the next match. */
    const pair = (means, stds, evidence) => {
      const difference = [means[0] - means[1], Math.hypot(...stds)];
      return { mean: means, std: stds, difference, again: cdf(difference[0] / Math.hypot(1, difference[1])), evidence };
    };
    const likelihoods = [0, 1].map(i => {  // of one score, the other one integrated out
      const j = 1 - i, room = Math.hypot(1, std[j]);
      return s => cdf(sign[i] * (s - mean[j]) / room);
    });

    function exact() {
      const one = [0, 1].map(i => tilted(mean[i], std[i], likelihoods[i])), gap = tilted(mu, Math.sqrt(V), cdf);
      const densities = [0, 1].map(i => s => bell(mean[i], std[i])(s) * likelihoods[i](s) / one[i].Z);
      return { mean: one.map(x => x.mean), std: one.map(x => x.std), difference: [gap.mean, gap.std], densities,
               again: tilted(mu, Math.sqrt(V), d => cdf(d) ** 2).Z / gap.Z, evidence: Math.log(gap.Z) };
    }

    /** The cavities are the prior, so one update is the fixed point. */
    function ep() {
      const room = Math.sqrt(1 + V), z = mu / room, [evidence, h] = normal(z), slope = h / room, bend = h * (z + h) / (1 + V);
      return pair(mean.map((m, i) => m + sign[i] * v[i] * slope), v.map(x => Math.sqrt(x - x * x * bend)), evidence);
    }

    /** At the fixed point both sites have the precision b = -E (log Phi)''(d) of their own posterior: its one
        root. The plain iteration of b does not converge for wide priors. */
    function kl() {
      const near = NODES.slice(35, -35);  // nothing grows here that a weight of 1e-17 would not outdo
      let middle = mu, slope = 0, bend = 0;
      const after = b => v.map(x => 1 / (1 / x + b)), width = left => Math.sqrt(left[0] + left[1]);
      const excess = b => {
        const spread = width(after(b));
        for (let step = 1, k = 0; Math.abs(step) > 1e-12 && k < 50; k++) {  // Newton: middle = mu + V E h(d)
          [slope, bend] = [0, 0];
          for (const [t, weight] of near) {
            const d = middle + spread * t, h = normal(d)[1];
            slope += weight * h;
            bend += weight * h * (d + h);  // h' = -h (d + h)
          }
          step = (middle - mu - V * slope) / (1 + V * bend);
          middle -= step;
        }
        return b - bend;
      };
      const left = after(root(excess, 0, 1)), spread = width(left), shift = v.map((x, i) => sign[i] * x * slope);
      const expected = near.reduce((sum, [t, weight]) => sum + weight * normal(middle + spread * t)[0], 0);
      const [one, other] = left.map((x, i) => (x / v[i] + shift[i] ** 2 / v[i] - 1 - Math.log(x / v[i])) / 2);  // KL(q | prior)
      return pair(mean.map((m, i) => m + shift[i]), left.map(Math.sqrt), expected - one - other);
    }
    return { prior: pair(mean, std, null), exact: exact(), ep: ep(), kl: kl() };
  }

  /** Scores over years: mean and standard deviation of a player at a time, linear between the grid's times,
      null where there is no curve (std 0); and the probit's chance that one beats another at that time. */
  function scoreTimelines({ years, mean, std }) {
    const last = years.length - 1;

    function at(i, time) {
      let [k, end] = [0, last];
      while (end - k > 1) {
        const middle = (k + end) >> 1;
        if (years[middle] <= time) k = middle; else end = middle;
      }
      const share = (time - years[k]) / (years[end] - years[k]);
      if (!(share >= 0 && share <= 1) || (share < 1 && !std[i][k]) || (share > 0 && !std[i][end])) return null;
      const mix = values => (1 - share) * values[i][k] + share * values[i][end];
      return { mean: mix(mean), std: mix(std) };
    }

    /** Noise of variance 1 is added to the difference of the scores. */
    const chance = (one, other) => cdf((one.mean - other.mean) / Math.hypot(1, one.std, other.std));

    /** The grid's times of a curve, in unbroken pieces. */
    const pieces = keep => years.reduce((found, _, k) => {
      if (keep(k)) { if (k && keep(k - 1)) found[found.length - 1].push(k); else found.push([k]); }
      return found;
    }, []);
    return { at, chance, pieces };
  }

  /** Covariance functions of chapter 12: k(t, u) for a variance v, a length scale, and the first times of intervals. */
  const COVARIANCES = {
    "constant": v => () => v,
    "piecewise constant": (v, _, boundaries) => (t, u) => (boundaries.some(b => (t < b) !== (u < b)) ? 0 : v),
    "Wiener": v => (t, u) => v * Math.min(t, u),
    "linear": v => (t, u) => v * t * u,
    "Matérn 1/2": (v, scale) => (t, u) => v * Math.exp(-Math.abs(t - u) / scale),
    "Matérn 3/2": (v, scale) => (t, u) => { const g = Math.sqrt(3) * Math.abs(t - u) / scale; return v * (1 + g) * Math.exp(-g); },
  };

  /** The posterior of a score with mean 0 and covariances k, given y = score + normal noise of variance 1 at some times.
      Exact. `at` gives its mean and standard deviation at a time, and the weight of each y in the mean. */
  function scorePosterior(k, times, y) {
    const n = times.length, L = [];  // LL' = K + I
    times.forEach((t, i) => {
      L.push([]);
      for (let j = 0; j <= i; j++) {
        const left = k(t, times[j]) + (i === j) - dot(L[i], L[j]);  // the entries before column j
        L[i].push(i === j ? Math.sqrt(left) : left / L[j][j]);
      }
    });
    const forward = b => b.reduce((x, value, i) => [...x, (value - dot(x, L[i])) / L[i][i]], []);
    const solve = b => forward(b).reduceRight((x, value, i) => {
      x[i] = (value - x.reduce((sum, later, j) => sum + L[j][i] * later, 0)) / L[i][i];
      return x;
    }, []);
    const at = time => {
      const cross = times.map(t => k(time, t)), weights = solve(cross);
      return { mean: dot(weights, y), std: Math.sqrt(Math.max(0, k(time, time) - dot(weights, cross))), weights };
    };
    const evidence = -dot(forward(y), forward(y)) / 2 - L.reduce((sum, row, i) => sum + Math.log(row[i]), 0) - (n / 2) * Math.log(2 * Math.PI);
    return { at, evidence };
  }

  /** Elo ratings before and after each match [first, second, y] of n players, in order; a tie (y = 0) is half a win. */
  function eloRatings(n, matches, k, start = 1200) {
    return matches.reduce((path, match) => [...path, eloStep(path[path.length - 1], match, k)], [Array(n).fill(start)]);
  }

  function eloStep(ratings, [first, second, y], k) {
    const gain = k * ((1 + y) / 2 - 1 / (1 + 10 ** ((ratings[second] - ratings[first]) / 400))), after = ratings.slice();
    after[first] += gain;
    after[second] -= gain;
    return after;
  }

  /** Over all orders of the matches: each player's lowest and highest rating, and how often the player alone is first. */
  function eloOrders(n, matches, k, start = 1200) {
    const low = Array(n).fill(Infinity), high = Array(n).fill(-Infinity), first = Array(n).fill(0), used = matches.map(() => false);
    let count = 0;
    const visit = (ratings, depth) => {
      if (depth < matches.length) {
        matches.forEach((match, i) => {
          if (used[i]) return;
          used[i] = true;
          visit(eloStep(ratings, match, k), depth + 1);
          used[i] = false;
        });
        return;
      }
      count++;
      const most = Math.max(...ratings), leader = ratings.findIndex(r => r > most - 1e-9);
      if (ratings.every((r, i) => i === leader || r < most - 1e-9)) first[leader]++;
      ratings.forEach((r, i) => { low[i] = Math.min(low[i], r); high[i] = Math.max(high[i], r); });
    };
    visit(Array(n).fill(start), 0);
    return { low, high, first: first.map(times => times / count), count };
  }

  /** Bradley-Terry scores of maximum likelihood, with mean 0; a tie is half a win. Where the maximum does not exist, `scores`
      is null, and the players `unbeaten` have neither lost to nor tied with any other player. */
  function bradleyTerry(n, matches) {
    const P = Array.from({ length: n }, () => Array(n).fill(0)), ids = P.map((_, i) => i);
    matches.forEach(([first, second, y]) => { P[first][second] += (1 + y) / 2; P[second][first] += (1 - y) / 2; });
    const reach = P.map((row, i) => row.map((wins, j) => wins > 0 || i === j));  // i is above j by a chain of wins
    for (const k of ids) for (const i of ids) for (const j of ids) reach[i][j] ||= reach[i][k] && reach[k][j];
    const above = ids.map(j => ids.filter(i => reach[i][j])), unbeaten = above.reduce((a, b) => (b.length < a.length ? b : a));
    if (unbeaten.length < n) return { scores: null, unbeaten };

    const value = f => ids.reduce((sum, i) => sum - dot(P[i], ids.map(j => Math.log1p(Math.exp(f[j] - f[i])))), 0);
    let scores = ids.map(() => 0);
    for (let round = 0; round < 100; round++) {
      const chance = ids.map(i => ids.map(j => 1 / (1 + Math.exp(scores[j] - scores[i]))));
      const slope = ids.map(i => ids.reduce((sum, j) => sum + P[i][j] * chance[j][i] - P[j][i] * chance[i][j], 0));
      const bend = ids.map(i => ids.map(j => (P[i][j] + P[j][i]) * chance[i][j] * chance[j][i]));
      // Newton's method; adding 1 / n to all entries keeps the mean at 0.
      const rows = ids.map(i => [...ids.map(j => (i === j ? dot(bend[i], ids.map(() => 1)) - bend[i][i] : -bend[i][j]) + 1 / n), slope[i]]);
      const step = eliminate(rows, n).A.map(row => row[n]);
      let part = 1;
      while (part > 1e-6 && value(scores.map((f, i) => f + part * step[i])) < value(scores) - 1e-12) part /= 2;
      scores = scores.map((f, i) => f + part * step[i]);
      if (Math.max(...step.map(Math.abs)) < 1e-12) break;
    }
    return { scores, unbeaten: [] };
  }

  /** The numbers of the tasks nearest to some sizes: those with the smallest sum of absolute differences of logarithms. */
  function nearestTasks(tasks, sizes) {
    const distances = tasks.map(task => task.sizes.reduce((sum, size, k) => sum + Math.abs(Math.log(size / sizes[k])), 0));
    const least = Math.min(...distances);
    return tasks.flatMap((_, i) => (distances[i] < least + 1e-8 ? [i] : []));
  }

  /** The numbers of the tasks that fit some sizes, each number from half to twice the size, and of the nearest of
      these; of the nearest of all if none fits. */
  function fittingTasks(tasks, sizes) {
    const near = (size, k) => Math.abs(Math.log2(size / sizes[k])) < 1 + 1e-9;
    const fits = tasks.flatMap((task, i) => (task.sizes.every(near) ? [i] : []));
    const chosen = fits.length ? fits : tasks.map((_, i) => i);
    return { fits, nearest: nearestTasks(chosen.map(i => tasks[i]), sizes).map(k => chosen[k]) };
  }

  const inWords = (sizes, labels) => sizes.map((size, k) => `${Math.round(size)} ${labels[k]}`).join(" and ");

  /** What the recorded runs of a task say, and how many tasks of the family fit some sizes. No learner is called
      the best where the rules show no difference. */
  function taskInWords({ name, sizes: labels, replicate, tasks }, shown, sizes) {
    const { rows, units, ...task } = tasks[shown], { fits } = fittingTasks(tasks, sizes), others = rows.slice(1);
    const close = others.filter(row => row[4] === false).map(([learner]) => learner), [lowest, , , , worse] = rows[0];
    const yours = `Your data are ${name}${labels.length ? `: ${inWords(sizes, labels)}` : ""}.`;
    const found = !labels.length ? "" : ` Recorded tasks that fit: ${fits.length || "none"} of ${tasks.length}.`
      + (fits.length ? "" : " The figure shows the nearest one, which may say little about your data.");
    const about = ` The task ${task.name}${labels.length ? ` (${inWords(task.sizes, labels)})` : ""} has ${units} replicates, each a ${replicate}.`;
    const low = ` The mean loss of ${lowest} is the lowest`;
    if (worse === null) return `${yours}${found}${about}${low}, but there are too few replicates to decide anything.`;
    const verdict = !close.length ? `, and ${others.length === 1 ? "the other learner is" : `all ${others.length} others are`} shown to be worse.`
      : `, but ${close.length} of the ${others.length} others ${close.length === 1 ? "is" : "are"} not shown to be worse${close.length < 6 ? `: ${close.join("; ")}` : ""}.`;
    return `${yours}${found}${about}${low}${verdict}` + (close.includes("constant") ? " The constant forecast is among them, so this task decides little." : "");
  }

  // Fractions [numerator, denominator] of BigInt in lowest terms, the denominator positive: nothing is rounded.
  const divisor = (a, b) => (b ? divisor(b, a % b) : a < 0n ? -a : a);
  function fraction(n, d = 1n) {
    const by = divisor(n, d) * (d < 0n ? -1n : 1n);
    return [n / by, d / by];
  }
  const plus = ([a, b], [c, d]) => fraction(a * d + c * b, b * d), times = ([a, b], [c, d]) => fraction(a * c, b * d);
  const negative = ([n, d]) => [-n, d], inverse = ([n, d]) => fraction(d, n);

  /** Analogical proportions by name: the slider of each, and how far a is to b as c is to d, as [numerator,
      denominator]. All numbers are whole: a, b, c, d and the tolerance count steps of 1/q, the stretch of the
      differences counts percents. */
  const PROPORTIONS = (() => {
    const { abs, max, min, sign } = Math, same = (a, b, c, d) => sign(a - b) === sign(c - d);
    const difference = (a, b, c, d, { q, stretch }) => [100 * q - stretch * abs(a - b - c + d), 100 * q];
    const softened = (a, b, c, d, { q }) => [q - (same(a, b, c, d) ? abs(a - b - c + d) : max(abs(a - b), abs(c - d))), q];
    const quotient = (a, b, c, d) => [min(a * d, b * c), max(a * d, b * c) || 1];
    const closest = (a, b, c, d, { q }) => [q - max(abs(min(a, d) - min(b, c)), abs(max(a, d) - max(b, c))), q];
    const near = degree => (a, b, c, d, { tolerance: e }) =>  // 1 is e, or 1 without a tolerance
      [max(min(degree(abs(a - b), e), degree(abs(c - d), e)), min(degree(abs(a - c), e), degree(abs(b - d), e))), e || 1];
    const graded = (gap, e) => (e ? max(0, e - gap) : +!gap);
    const found = {
      difference: ["stretch", difference],
      clipped: ["stretch", (...all) => { const [n, d] = difference(...all); return [max(0, n), d]; }],
      softened: ["", softened],
      "min-max": ["", closest],
      approximate: ["tolerance", near((gap, e) => (gap <= e ? e || 1 : 0))],
      graded: ["tolerance", near(graded)],
    };
    // Degree 0 where signs differ; 0 has a sign of its own, or a positive one.
    for (const [name, knob, f] of [["arithmetic", "stretch", difference], ["geometric", "", quotient], ["signed min-max", "", closest]]) {
      found[name] = [knob, (a, b, c, d, s) => (same(a, b, c, d) ? f(a, b, c, d, s) : [0, 1])];
      found[`${name}, 0 positive`] = [knob, (a, b, c, d, s) => ((a >= b) === (c >= d) ? f(a, b, c, d, s) : [0, 1])];
    }
    return found;
  })();

  /** The degrees of a proportion between all pairs, as fractions. */
  const analogyGram = (name, pairs, setting) => pairs.map(pair => pairs.map(other =>
    fraction(...PROPORTIONS[name][1](...pair, ...other, setting).map(BigInt))));

  /** Is a symmetric matrix K of fractions positive semidefinite? Pivots of K = LDL'; where it is not, whole
      numbers x, and x'Kx < 0. */
  function semidefinite(K) {
    const one = k => K.map((_, j) => [j === k ? 1n : 0n, 1n]), A = K.map(row => row.slice()), vectors = K.map((_, k) => one(k));
    const add = (x, factor, y) => x.map((value, j) => plus(value, times(factor, y[j]))), pivots = [];
    const form = x => K.reduce((sum, row, i) => row.reduce((part, entry, j) => plus(part, times(entry, fraction(x[i] * x[j]))), sum), [0n, 1n]);

    /** The direction of x in the smallest whole numbers that keep x'Kx negative, up to 50; else x made whole. */
    function refuted(x) {
      const common = x.reduce((by, [, d]) => (by * d) / divisor(by, d), 1n), whole = x.map(([n, d]) => (n * common) / d);
      const sign = whole.find(n => n) < 0n ? -1n : 1n, size = n => (n < 0n ? -n : n), most = whole.reduce((a, n) => (size(n) > a ? size(n) : a), 0n);
      const rounded = (n, k) => (n < 0n ? -1n : 1n) * ((2n * k * size(n) + most) / (2n * most));
      const tries = Array.from({ length: 50 }, (_, k) => whole.map(n => sign * rounded(n, BigInt(k + 1))));
      const found = tries.find(y => form(y)[0] < 0n) || whole;
      return { psd: false, x: found, value: form(found) };
    }

    for (let k = 0; k < K.length; k++) {  // A[i][j] = vectors[i]' K vectors[j], what is left after k pivots
      const pivot = A[k][k], j = A[k].findIndex(([n], i) => i > k && n);
      if (pivot[0] < 0n) return refuted(vectors[k]);
      // Beside a zero: the form of v_j + t v_k is A_jj + 2 t A_kj, here -1.
      if (!pivot[0] && j > k) return refuted(add(vectors[j], times(negative(plus(A[j][j], [1n, 1n])), inverse(times([2n, 1n], A[k][j]))), vectors[k]));
      pivots.push(pivot);
      for (let i = k + 1; pivot[0] && i < K.length; i++) {
        const factor = negative(times(A[i][k], inverse(pivot)));
        [A[i], vectors[i]] = [add(A[i], factor, A[k]), add(vectors[i], factor, vectors[k])];
      }
    }
    return { psd: true, pivots, rank: pivots.filter(([n]) => n).length };
  }

  /** Heights of labels, [wanted middle, height] each from the top, moved as little as keeps them apart and
      between the ends: neighbours that touch make one block, which stands at the mean of their wishes. */
  function apart(wishes, low, high) {
    const blocks = [];
    for (const [middle, height] of wishes) {
      let block = { sizes: [height], size: height, top: middle - height / 2 };
      for (;;) {
        block.at = Math.max(low, Math.min(block.top, high - block.size));
        const above = blocks[blocks.length - 1];
        if (!above || above.at + above.size <= block.at + 1e-9) break;
        blocks.pop();
        const [n, m] = [above.sizes.length, block.sizes.length];
        block = { sizes: [...above.sizes, ...block.sizes], size: above.size + block.size,
                  top: (n * above.top + m * (block.top - above.size)) / (n + m) };
      }
      blocks.push(block);
    }
    return blocks.flatMap(({ at, sizes }) => sizes.map(height => (at += height) - height / 2));
  }

  /** Rows of marks at some places, the first row is 0: in each row, marks are at least a width apart. */
  function stacked(places, width) {
    const ends = [], rows = [];
    places.map((_, k) => k).sort((a, b) => places[a] - places[b]).forEach(k => {
      const free = ends.findIndex(end => places[k] - end >= width);
      rows[k] = free < 0 ? ends.length : free;
      ends[rows[k]] = places[k];
    });
    return rows;
  }

  /** Where f, negative at a and positive at b, is zero: false position, which halves an end that stays (Illinois). */
  function root(f, a, b) {
    let [below, above, side] = [f(a), f(b), 0];
    for (let k = 0; k < 100; k++) {
      const c = (a * above - b * below) / (above - below), value = f(c);
      if (Math.abs(value) < 1e-11) return c;
      if (value < 0) {
        [a, below] = [c, value];
        if (side < 0) above /= 2;
        side = -1;
      } else {
        [b, above] = [c, value];
        if (side > 0) below /= 2;
        side = 1;
      }
    }
    throw new Error(`no root after 100 steps, between ${a} and ${b}`);
  }

  // ---- Tools: elements, numbers, scales, controls

  function make(kind, attributes, parent, text) {
    const node = /^(svg|g|path|line|circle|rect|text|image|clipPath)$/.test(kind)
      ? document.createElementNS("http://www.w3.org/2000/svg", kind) : document.createElement(kind);
    set(node, attributes);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function set(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    return node;
  }

  /** A number as readers see it: so many digits after the point, and a minus sign. */
  function number(x, digits = 2) {
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : x < 0 ? "−∞" : "∞";
    const text = (Math.abs(x) + 1e-9).toFixed(digits);  // 0.125 is 0.13, also when it is a bit less
    return (x < 0 && Number(text) !== 0 ? "−" : "") + text;
  }

  /** Three significant digits, without an exponent. */
  const significant = x =>
    number(x, Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(x) || 1)))));

  function scale([low, high], [from, to], log) {
    const f = log ? Math.log10 : x => x, back = log ? x => 10 ** x : x => x;
    const place = x => from + ((f(x) - f(low)) / (f(high) - f(low))) * (to - from);
    place.invert = at => back(f(low) + ((at - from) / (to - from)) * (f(high) - f(low)));
    place.ticks = () => {
      const rough = log ? 1 : (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
      if (rough < 0) return [];  // rows of names, the first on top: no numbers
      const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= rough * 0.999), found = [];
      for (let k = Math.ceil(f(low) / step - 1e-9); k * step <= f(high) + 1e-9; k++) found.push(back(k * step));
      return found.map(x => [place(x), number(x, Math.max(0, -Math.floor(Math.log10(log ? x * 1.001 : step))))]);
    };
    return place;
  }

  let clips = 0;

  /** A plot: `frame` sets scales and draws axes, with x from left to right, or falling; lengths are pixels of 340 a width. No words stand among the
      curves: names and values have a line below it (`legend`) or a place beside it, and the axes' numbers are
      out of reach of a mark on the axis. */
  function plot(parent, name, height, margins) {
    const pad = { left: 52, right: 14, top: 28, bottom: 46, ...margins };
    const width = 340, id = `explorer-clip-${clips++}`;
    const root = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name }, parent);
    const [right, bottom] = [width - pad.right, height - pad.bottom];
    const box = { x: pad.left, y: pad.top, width: right - pad.left, height: bottom - pad.top };
    make("rect", box, make("clipPath", { id }, root));
    const axes = make("g", {}, root), inside = make("g", { "clip-path": `url(#${id})` }, root), front = make("g", {}, root);
    const self = { root, box };
    self.frame = (x, y, xlabel, ylabel, log = false, falling = false) => {
      self.x = scale(x, falling ? [right, pad.left] : [pad.left, right], log);
      self.y = scale(y, [bottom, pad.top]);
      axes.replaceChildren();
      self.x.ticks().forEach(([at, label]) => {
        make("line", { class: "grid", x1: at, x2: at, y1: pad.top, y2: bottom }, axes);
        const middle = Math.min(at, width - 4.2 * label.length);  // labels stay within the drawing
        make("text", { x: middle, y: bottom + 20, "text-anchor": "middle" }, axes, label);
      });
      self.y.ticks().forEach(([at, label]) => {
        make("line", { class: "grid", y1: at, y2: at, x1: pad.left, x2: right }, axes);
        make("text", { x: Math.max(pad.left - 14, 8.4 * label.length), y: at + 4, "text-anchor": "end" }, axes, label);
      });
      make("path", { class: "axis", d: `M${pad.left},${pad.top}V${bottom}H${right}` }, axes);
      make("text", { x: (pad.left + right) / 2, y: height - 6, "text-anchor": "middle" }, axes, xlabel);
      make("text", { x: 4, y: 14 }, axes, ylabel);
    };
    self.clear = () => { inside.replaceChildren(); front.replaceChildren(); };
    self.line = (points, look) => make("path", { class: `line ${look}`,
      d: "M" + points.map(([x, y]) => `${self.x(x).toFixed(2)},${self.y(y).toFixed(2)}`).join("L") }, inside);
    self.mark = (shape, x, y, look, size = 6) => mark(front, shape, self.x(x), self.y(y), look, size);
    /** Texts [y, text] to the left (side -1) or right of the plot, one above the other where they are near. */
    self.beside = (side, entries) => {
      const all = entries.map(([y, label]) => [self.y(y), label]).sort((a, b) => a[0] - b[0]);
      const middles = apart(all.map(([at]) => [at, 15]), pad.top, bottom - 8);
      all.forEach(([, label], k) => make("text", { x: side < 0 ? pad.left - 14 : right + 14, y: middles[k] + 4,
        "text-anchor": side < 0 ? "end" : "start" }, front, label));
    };
    /** Where the reader is: a line across the plot, with a handle on the axis. */
    self.cursor = x => {
      const at = self.x(x);
      make("line", { class: "cursor", x1: at, x2: at, y1: pad.top, y2: bottom }, inside);
      make("rect", { class: "handle", x: at - 13, y: bottom - 7, width: 26, height: 12, rx: 6 }, front);
      for (const [shape, side] of [["left", -1], ["right", 1]]) mark(front, shape, at + 6 * side, bottom - 1, "on-handle", 3.5);
    };
    self.drag = (then, grip) => drag(root, (x, y) => then(self.x.invert(x), self.y.invert(y)), grip);
    return self;
  }

  const SHAPES = {
    circle: "M-1,0A1,1 0 1 0 1,0A1,1 0 1 0 -1,0Z",
    up: "M0,-1.15L1.1,0.85H-1.1Z",
    down: "M0,1.15L1.1,-0.85H-1.1Z",
    right: "M1.15,0L-0.85,1.1V-1.1Z",
    left: "M-1.15,0L0.85,1.1V-1.1Z",
    diamond: "M0,-1.3L1.3,0L0,1.3L-1.3,0Z",
    square: "M-1,-1H1V1H-1Z",
  };

  function mark(parent, shape, x, y, look, size) {
    const transform = `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${size})`;
    return make("path", { d: SHAPES[shape], class: `mark ${look}`, transform }, parent);
  }

  /** Follow the pointer (mouse, finger, pen) from where it goes down, in the units of the view box. A finger
      that pans the page changes nothing: it acts when it moves sideways or is lifted, or on the grip alone. */
  function drag(root, then, grip) {
    if (!grip) root.classList.add("slide");
    let held = null, tap = null; // tap: where a finger went down that may still pan the page
    const act = event => {
      const at = root.getBoundingClientRect(), unit = root.viewBox.baseVal.width / at.width;
      then((event.clientX - at.left) * unit, (event.clientY - at.top) * unit);
    };
    root.addEventListener("pointerdown", event => {
      const finger = event.pointerType === "touch";
      if (held !== null || event.button !== 0 || (finger && grip && !grip.contains(event.target))) return;
      held = event.pointerId;
      tap = finger && !grip ? event : null;
      root.setPointerCapture(held);
      if (!finger) act(event);
    });
    root.addEventListener("pointermove", event => {
      if (event.pointerId !== held) return;
      if (tap) {
        const across = Math.abs(event.clientX - tap.clientX), along = Math.abs(event.clientY - tap.clientY);
        if (Math.max(across, along) < 8) return;
        if (along >= across) held = null; // the page, until the finger is lifted
        tap = null;
      }
      if (held !== null) act(event);
    });
    root.addEventListener("pointerup", event => {
      if (event.pointerId !== held) return;
      act(event);
      held = null;
    });
    root.addEventListener("pointercancel", event => { if (event.pointerId === held) held = null; });
    if (grip) grip.addEventListener("touchstart", event => event.preventDefault(), { passive: false });
  }

  /** A labelled slider; `show` says a value in words. Returns a function that moves it. */
  function slider(parent, label, [min, max, step], show, then) {
    const row = make("label", { class: "explorer-slider" }, parent);
    make("span", {}, row, label);
    const input = make("input", { type: "range", min, max, step, "aria-label": label }, row);
    const shown = make("span", { class: "explorer-value", "aria-hidden": "true" }, row);
    input.addEventListener("input", () => then(Number(input.value)));
    return value => {
      input.value = value;
      shown.textContent = show(value);
      input.setAttribute("aria-valuetext", show(value));
    };
  }

  /** Radio buttons; the first is chosen at the beginning. */
  function choice(parent, label, names, then) {
    const row = make("span", { class: "explorer-choice", role: "radiogroup", "aria-label": label }, parent), name = `explorer-choice-${clips++}`;
    make("span", { "aria-hidden": "true" }, row, label);
    names.forEach((text, k) => {
      const one = make("label", {}, row), input = make("input", { type: "radio", name }, one);
      one.append(` ${text}`);
      input.checked = k === 0;
      input.addEventListener("change", () => then(k));
    });
  }

  /** A list to pick one name from, beside the look that it gets, or the label; `then` gets its number. */
  function picker(parent, label, names, sampled, then) {
    const row = make("label", { class: `explorer-pick${sampled ? "" : " wide"}` }, parent);
    if (sampled) {
      const sample = make("svg", { viewBox: "0 0 40 20", "aria-hidden": "true" }, row), [shape, look, line] = sampled;
      make("path", { class: `line ${line}`, d: "M0,10H40" }, sample);
      mark(sample, shape, 20, 10, look, 5);
    } else make("span", {}, row, label);
    const list = make("select", { "aria-label": label }, row);
    names.forEach(([value, name]) => make("option", { value }, list, name));
    list.addEventListener("change", () => then(Number(list.value)));
    return (value, taken = []) => {  // what the other lists show cannot be picked
      list.value = value;
      for (const option of list.options) option.disabled = +option.value !== value && taken.includes(+option.value);
    };
  }

  function button(parent, label, then) {
    make("button", { type: "button" }, parent, label).addEventListener("click", then);
  }

  /** Make an element of a drawing act like a button. */
  function press(node, then) {
    node.addEventListener("click", then);
    node.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); then(); }
    });
  }

  /** A line of [shape, look, text], "line" among the shapes; returns a function that writes another one. */
  function legend(parent, entries = []) {
    const list = make("p", { class: "explorer-legend" }, parent);
    const fill = entries => list.replaceChildren(...entries.map(([shape, look, label]) => {
      const entry = make("span", {}), sample = make("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" }, entry);
      if (shape === "line") make("path", { class: `line ${look}`, d: "M-10,0H10" }, sample);
      else mark(sample, shape, 0, 0, look, 6);
      entry.append(` ${label}`);
      return entry;
    }));
    fill(entries);
    return fill;
  }

  /** A table of texts; the first cell of a row heads it. */
  function table(parent, caption) {
    const node = make("table", { class: "explorer-table" }, make("div", { class: "explorer-scroll" }, parent));
    make("caption", {}, node, caption);
    const head = make("thead", {}, node), body = make("tbody", {}, node);
    return (columns, rows) => {
      const fill = (part, tag, lines) => part.replaceChildren(...lines.map(cells => {
        const row = make("tr", {});
        cells.forEach((cell, k) => (k && tag === "td" ? make("td", {}, row, cell)
          : make("th", { scope: tag === "td" ? "row" : "col" }, row, cell)));
        return row;
      }));
      fill(head, "th", [columns]);
      fill(body, "td", rows);
    };
  }

  /** The sentence under an explorer. Screen readers hear it, and what else is said elsewhere, when it has stayed
      the same for a while. */
  function sentence(parent) {
    const both = make("div", { class: "explorer-said" }, parent);
    const seen = make("p", { class: "explorer-state", "aria-hidden": "true" }, both);
    const heard = make("p", { class: "explorer-heard", role: "status", "aria-live": "polite" }, both);
    let wait = 0;
    return (text, more = "") => {
      seen.textContent = text;
      clearTimeout(wait);
      wait = setTimeout(() => { if (heard.textContent !== text + more) heard.textContent = text + more; }, 400);
    };
  }

  const panels = parent => make("div", { class: "explorer-panels" }, parent);
  const controls = parent => make("div", { class: "explorer-controls" }, parent);

  // ---- The explorers

  const explorers = {};

  explorers.margins = (box, data) => {
    const problem = marginProblem(data.preferences, data.ties), { worst, middle, reach } = problem;
    const [least, most] = (data.stretch || [0.25, 4]).map(Math.log2), degrees = a => (near(a, 0) * 180) / Math.PI;
    const state = { angle: middle - reach / 2, stretch: Math.min(Math.max(1, 2 ** least), 2 ** most) };
    const top = controls(box);
    const moveAngle = slider(top, "direction of w", [-180, 180, 0.5], v => `${number(v, 1)}°`,
      v => { state.angle = (v * Math.PI) / 180; draw(); });
    const moveStretch = slider(top, "stretch of feature 2", [least, most, 0.05], v => `× ${number(2 ** v)}`,
      v => { state.stretch = 2 ** v; draw(); });
    const lp = problem.lp(1);
    const pair = make("span", {}, top);
    button(pair, "w of the LP", () => { if (lp !== null) { state.angle = lp; draw(); } });
    button(pair, "w of the QP", () => { if (lp !== null) { state.angle = problem.qp(state.stretch); draw(); } });
    const row = panels(box);
    const left = plot(make("div", {}, row), "Differences in the plane with the direction w", 352);
    const both = make("div", {}, row);
    const ratio = plot(both, "(s − t) / (s + t) against the direction of w", 176);
    const gap = plot(both, "s − t against the direction of w", 176);
    legend(box, [["up", "first", "preference, better item first"], ["circle", "tie", "tie, both orders"],
      ["line", "first", "s, of the worst preference"], ["line", "tie dashed", "t, of the worst tie"], ["diamond", "lp", "LP"], ["square", "qp open", "QP"]]);
    const fill = table(box, "Of the unit vector on the stretched features; μ = (s − t)/(s + t)");
    const say = sentence(box);
    const grip = make("g", { class: "grip" }, left.root);
    make("circle", { r: 22, fill: "transparent" }, grip);
    mark(grip, "circle", 0, 0, "ink", 10);
    make("text", { y: 4, "text-anchor": "middle", class: "on-grip" }, grip, "w");
    left.drag((x, y) => {
      if (x || y) { state.angle = Math.atan2(y * state.stretch, x); draw(); }  // weights of the features as they were
    }, grip);
    for (const panel of [ratio, gap]) panel.drag(x => { state.angle = (x * Math.PI) / 180; draw(); });

    function plane(now) {
      const { stretch, angle } = state, stretched = d => [d[0], d[1] * stretch];
      const size = 1.12 * Math.max(...[...data.preferences, ...data.ties].flatMap(stretched).map(Math.abs));
      const turn = Math.atan2(Math.sin(angle) / stretch, Math.cos(angle));
      const along = (a, b) => [a * Math.cos(turn) - b * Math.sin(turn), a * Math.sin(turn) + b * Math.cos(turn)];
      left.frame([-size, size], [-size, size], "difference in feature 1", "difference in feature 2, stretched");
      left.clear();
      const level = (a, look) => left.line([along(a, -3 * size), along(a, 3 * size)], look);
      if (now.gap > 0) left.line([along(now.s, -3 * size), along(now.s, 3 * size), along(now.t, 3 * size), along(now.t, -3 * size)], "band");
      level(now.s, "first");
      level(now.t, "tie dashed");
      left.line([[0, 0], along(0.72 * size, 0)], "arrow");
      data.ties.forEach(d => left.mark("circle", ...stretched(d), "tie", 4.5));
      data.preferences.forEach(d => left.mark("up", ...stretched(d), "first", 5.5));
      const tie = data.ties[now.tie], sign = Math.sign(dot(along(1, 0), stretched(tie))) || 1;
      left.mark("circle", ...stretched(data.preferences[now.preference]), "ring", 10);
      left.mark("circle", ...stretched(tie).map(x => sign * x), "ring", 10);
      const [x, y] = along(0.72 * size, 0);
      set(grip, { transform: `translate(${left.x(x)},${left.y(y)})` });
    }

    function curve(panel, key, label, found, now) {
      const high = 1.25 * Math.max(...found.map(a => worst(a, state.stretch)[key]));
      const wide = 1.25 * reach, at = near(state.angle, middle), turned = degrees(middle) - middle * 180 / Math.PI;
      const degree = a => a * 180 / Math.PI + turned;
      panel.frame([degree(middle - wide), degree(middle + wide)], [0, high], "direction of w in degrees", label);
      panel.clear();
      const points = Array.from({ length: 401 }, (_, k) => middle + (k / 200 - 1) * wide);
      panel.line(points.map(a => [degree(a), Math.max(worst(a, state.stretch)[key], -high)]), key === "mu" ? "lp" : "qp");
      found.forEach((a, k) => panel.mark(k ? "square" : "diamond", degree(a), worst(a, state.stretch)[key], k ? "qp open" : "lp", k ? 8 : 6));
      if (Math.abs(at - middle) > wide) return;
      panel.cursor(degree(at));
      if (now[key] >= 0) panel.mark("circle", degree(at), now[key], "now", 5);
    }

    function draw() {
      const { angle, stretch } = state, now = worst(angle, stretch);
      moveAngle(degrees(angle));
      moveStretch(Math.log2(stretch));
      plane(now);
      const found = lp === null ? [] : [lp, problem.qp(stretch)], values = found.map(a => worst(a, stretch));
      const line = (name, a, v) => [name, `${number(degrees(a), 1)}°`, number(v.s), number(v.t), number(v.gap > 0 ? v.ratio : NaN), number(v.gap > 0 ? v.mu : NaN, 3), number(v.gap, 3)];
      fill(["w of", "angle", "s", "t", "s/t", "μ", "s − t"],
        [line("you", angle, now), ...found.map((a, k) => line(["LP", "QP"][k], a, values[k]))]);
      if (lp === null) return say("No direction separates these comparisons: s is never above t.");
      curve(ratio, "mu", "μ = (s − t)/(s + t)", found, now);
      curve(gap, "gap", "s − t", found, now);
      const apart = degrees(found[1] - found[0]), part = values[1].mu / values[0].mu;
      const here = now.gap > 0 ? `w separates the comparisons with the margin ${number(now.mu, 3)}` : "w does not separate the comparisons";
      say(`Feature 2 is stretched by ${number(stretch)}; ${here}. ` + (Math.abs(apart) < 0.05
        ? "The QP has the direction of the LP." : `The QP's direction is ${number(Math.abs(apart), 1)} degrees from the LP's, with ${number(part)} of its margin.`));
    }
    draw();
  };

  explorers.semiorder = (box, data) => {
    const { pairs } = data, names = data.items.map(String), n = names.length, unit = 10, most = 2 * (n - 1) * unit;  // scores count tenths
    const state = { scores: data.scores.map(f => Math.round(f * unit)), y: data.examples[0][1].slice(), tau: unit, chosen: 0 };
    const said = f => number(f / unit, 1), within = (f, low, high) => Math.min(Math.max(Math.round(f), low), high);
    const moveTau = value => { state.tau = within(value, 1, 3 * unit); draw(); };
    const put = (k, f) => { Object.assign(state, { chosen: k }).scores[k] = within(f, 0, most); draw(); };

    const top = controls(box), slide = slider(top, "threshold τ", [1, 3 * unit, 1], said, moveTau), loads = make("span", { style: "flex-wrap: wrap" }, top);
    data.examples.forEach(([name, y]) => button(loads, name, () => { state.y = y.slice(); draw(); }));
    button(make("span", {}, top), "Find scores", () => {
      Object.assign(state, { tau: unit, scores: semiorder(n, pairs, state.y).scores(unit) });
      draw();
    });
    const find = top.lastElementChild;
    make("p", {}, box, "Move the items along the line. Press an answer to change it.");
    const row = panels(box), first = make("div", {}, row), second = make("div", {}, row);
    const list = make("ol", { class: "explorer-matches" }, first);
    const answers = pairs.map((_, i) => {
      const answer = make("button", { type: "button" }, make("li", {}, list));
      answer.addEventListener("click", () => {
        state.y[i] = { 1: 0, 0: -1, "-1": null, null: 1 }[state.y[i]];
        draw();
      });
      return answer;
    });
    const line = plot(first, "Items on a line, and an arc for each pair: a preference or a tie by the scores", 232, { left: 14 });
    const right = plot(second, "Score difference of each answer, and the threshold", 232, { right: 52 });
    legend(second, [["up", "first", "preference"], ["circle", "tie", "tie"], ["circle", "ring", "answer not reproduced"], ["line", "first fine", "thin arc: no answer"],
      ["line", "first", "s, of the worst preference"], ["line", "tie dashed", "t, of the worst tie"], ["line", "broad", "first cycle of the table"]]);
    const fill = table(make("div", { style: "min-height: 9em" }, second), "Climbing cycles: the four with the fewest ties l per preference k");
    const say = sentence(box);
    line.root.setAttribute("role", "group");  // it holds what can be moved
    line.frame([-0.03 * most, 1.03 * most].map(f => f / unit), [0.1, -1.1], "score; shaded: within τ of the item moved last", "arcs: all pairs, by scores and threshold");
    right.drag(x => moveTau(x * unit));

    const grips = make("g", {}, line.root);
    const items = names.map((name, k) => {
      const item = make("g", { class: "grip press", tabindex: 0, role: "slider", "aria-valuemin": 0, "aria-valuemax": most / unit,
        "aria-label": `item ${name}: arrows to the left and right move it` }, grips);
      make("circle", { r: 17, fill: "transparent" }, item);
      make("circle", { r: 10, class: "label" }, item);
      make("text", { y: 4.5, "text-anchor": "middle" }, item, name);
      item.addEventListener("keydown", event => {
        const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
        if (step) { event.preventDefault(); put(k, state.scores[k] + step); }
      });
      return item;
    });
    let held = -1;
    line.root.addEventListener("pointerdown", event => { if (event.isPrimary) held = items.findIndex(item => item.contains(event.target)); });
    drag(line.root, x => { if (held >= 0) put(held, line.x.invert(x) * unit); }, grips);

    /** The answer to a pair as a formula, the first item first unless the second is better. */
    const formula = i => {
      const [a, b] = pairs[i].map(k => names[k]);
      return state.y[i] === null ? `${a}, ${b}` : state.y[i] ? [`${a} > ${b}`, `${b} > ${a}`][(1 - state.y[i]) / 2] : `${a} = ${b}`;
    };
    const around = cycle => cycle.pairs.reduce((text, i, k) => `${text}\u00a0${state.y[i] ? "<" : "="}\u00a0${names[cycle.items[(k + 1) % cycle.items.length]]}`, names[cycle.items[0]]);

    function arcs(differences, wrong, cycle) {
      const { scores, tau, chosen } = state, f = scores.map(score => score / unit), [low, high] = [-1, 1].map(side => f[chosen] + (side * tau) / unit);
      line.clear();
      line.line([[low, 1], [high, 1], [high, -2], [low, -2]], "warn");
      pairs.forEach(([a, b], i) => {
        const middle = (f[a] + f[b]) / 2, reach = (f[b] - f[a]) / 2, height = Math.abs(reach) / (most / unit / 2);
        const arc = Array.from({ length: 41 }, (_, k) => (Math.PI * k) / 40).map(turn => [middle - reach * Math.cos(turn), -height * Math.sin(turn)]);
        const tie = Math.abs(differences[i]) <= tau, fine = state.y[i] === null ? " fine" : "";
        if (cycle && cycle.pairs.includes(i)) line.line(arc, "broad");
        line.line(arc, (tie ? "tie dots" : "first") + fine);
        line.mark(tie ? "circle" : "up", middle, -height, tie ? "tie" : "first", tie ? 4 : 6);
        if (wrong[i]) line.mark("circle", middle, -height, "ring", 10);
      });
      const places = f.map(line.x), rows = stacked(places, 21);
      items.forEach((item, k) => set(item, { transform: `translate(${places[k]},${line.y(0) - 21 * rows[k]})`, "aria-valuenow": f[k], "aria-valuetext": `score ${said(scores[k])}` }));
    }

    function draw() {
      const { scores, tau, y } = state, { cycles, ratio, fits } = semiorder(n, pairs, y), [cycle] = cycles;
      const differences = pairs.map(([a, b]) => scores[a] - scores[b]), ids = pairs.flatMap((_, i) => (y[i] === null ? [] : [i]));
      const seen = differences.map((d, i) => (y[i] ? d * y[i] : Math.abs(d)));  // the better item first
      const wrong = seen.map((d, i) => y[i] !== null && (y[i] ? d <= tau : d > tau));
      const s = Math.min(...ids.filter(i => y[i]).map(i => seen[i])), t = Math.max(...ids.filter(i => !y[i]).map(i => seen[i]));
      slide(tau);
      find.style.visibility = fits ? "" : "hidden";
      answers.forEach((answer, i) => {
        const [a, b] = pairs[i].map(k => names[k]), words = y[i] === null ? `${a} and ${b}: no answer` : [`${b} is better than ${a}`, `${a} and ${b} tie`, `${a} is better than ${b}`][y[i] + 1];
        answer.textContent = y[i] === null ? words : formula(i);
        answer.setAttribute("aria-label", `answer ${i + 1}: ${words}; press to change`);
      });
      arcs(differences, wrong, cycle);

      const low = -2, high = most / unit, rows = ids.length;
      right.clear();
      right.frame([low - 0.2, high + 0.2], [rows - 0.3, -0.7], "score difference, better item first", "answer");
      right.line([-1, 1, 1, -1].map((side, k) => [(side * tau) / unit, k < 2 ? -2 : rows + 2]), "warn");
      for (const [value, look] of [[s, "first"], [t, "tie dashed"]])
        if (Number.isFinite(value)) right.line([[value / unit, -2], [value / unit, rows + 2]], look);
      right.cursor(tau / unit);
      ids.forEach((i, place) => {
        const at = Math.max(low, seen[i] / unit), beyond = at > seen[i] / unit;
        right.mark(beyond ? "left" : y[i] ? "up" : "circle", at, place, y[i] ? "first" : "tie", 5);
        if (wrong[i]) right.mark("circle", at, place, "ring", 10);
      });
      right.beside(-1, ids.map((i, place) => [place, formula(i)]));
      right.beside(1, ids.map((i, place) => [place, said(seen[i])]));

      fill(["cycle", "ties l", "preferences k", "l/k"], cycles.length ? cycles.slice(0, 4).map(one => [around(one), one.ties, one.preferences, number(one.ties / one.preferences)]) : [["none", "–", "–", "–"]]);
      const good = ids.filter(i => !wrong[i]).length, times = (k, what) => `${k === 1 ? "" : k}${what}`, many = (k, one, more) => `${k} ${k === 1 ? one : more}`;
      say(`The scores ${scores.map(said).join(", ")} with the threshold τ = ${said(tau)} reproduce ${good} of ${many(ids.length, "answer", "answers")}` +
        (s > t && Number.isFinite(s / t) ? `; s/t = ${number(s / t)}. ` : ". ") +
        (!cycle ? "Some scores reproduce all answers, because no cycle climbs."
          : fits ? `Some scores reproduce all answers, because each climbing cycle has more ties than preferences. The cycle ${around(cycle)} has ${many(cycle.ties, "tie", "ties")} and ${many(cycle.preferences, "preference", "preferences")}, so s/t is at most ${number(ratio)}.`
          : `No scores reproduce all answers. Around the cycle ${around(cycle)}, the preferences would raise the score by more than ${times(cycle.preferences, "τ")}` +
            (cycle.ties ? `, and the ${cycle.ties > 1 ? "ties" : "tie"} would lower it by at most ${times(cycle.ties, "τ")}.` : ", and no tie lowers it.")));
    }
    draw();
  };

  explorers.graph = (box, data) => {
    const n = data.items.length, names = data.items.map(String), middle = [170, 150];
    const edges = data.pairs.map((pair, k) => ({ pair, y: data.y[k], on: true }));
    for (let first = 1; first < n; first++)
      for (let second = 0; second < first; second++)
        if (!data.pairs.some(p => p.includes(first) && p.includes(second))) edges.push({ pair: [first, second], y: 1, on: false });
    const place = names.map((_, k) => {
      const turn = (2 * Math.PI * (k - 0.5)) / n - Math.PI / 2, radius = n === 4 ? 145 : 105;
      return [middle[0] + radius * Math.cos(turn), middle[1] + radius * Math.sin(turn)];  // four: a square
    });
    const begin = JSON.stringify(edges.map(({ y, on }) => ({ y, on })));
    const top = controls(box);
    make("p", {}, box, "Press a line to switch a comparison on or off, and the number on it to change its label. Beside each item stands its score f, and its part (component) where there are several.");
    const row = panels(box);
    button(top, "Start again", () => { JSON.parse(begin).forEach((old, k) => Object.assign(edges[k], old)); draw(); });
    button(top, "All off", () => { edges.forEach(edge => { edge.on = false; }); draw(); });
    const root = make("svg", { viewBox: "0 0 340 300", role: "group", "aria-label": "Comparison graph: each line is a switch, each label a button" }, make("div", {}, row));
    const right = make("div", { class: "explorer-broad", style: `min-height: ${2.1 * (edges.length + 3)}em` }, row);
    const fill = table(right, "The incidence matrix B, labels y, scores f by least squares"), say = sentence(box);

    for (const edge of edges) {
      const [a, b] = edge.pair.map(k => place[k]), [first, second] = edge.pair.map(k => names[k]);
      const across = ![1, n - 1].includes(Math.abs(edge.pair[0] - edge.pair[1]));  // lines that cross: labels off the middle
      const at = (share, k) => a[k] + share * (b[k] - a[k]), spot = across ? 0.33 : 0.5;
      const ends = { x1: at(0.12, 0), y1: at(0.12, 1), x2: at(0.88, 0), y2: at(0.88, 1) };
      edge.line = make("g", { role: "switch", tabindex: 0, class: "press", "aria-label": `comparison of ${first} with ${second}` }, root);
      make("line", { ...ends, class: "hit" }, edge.line);
      edge.drawn = make("line", { ...ends }, edge.line);
      const turn = (Math.atan2(b[1] - a[1], b[0] - a[0]) * 180) / Math.PI;
      const head = (share, flip) => make("path", { d: SHAPES.right, class: "mark ink", transform: `translate(${at(share, 0)},${at(share, 1)}) rotate(${turn + flip}) scale(7)` }, edge.line);
      edge.heads = { 1: head(across ? 0.12 : 0.16, 180), "-1": head(across ? 0.88 : 0.84, 0) };
      edge.label = make("g", { role: "button", tabindex: 0, class: "press", transform: `translate(${at(spot, 0)},${at(spot, 1)})` }, root);
      make("circle", { r: 15, class: "label" }, edge.label);
      edge.text = make("text", { y: 5, "text-anchor": "middle" }, edge.label);
      press(edge.line, () => { edge.on = !edge.on; draw(); });
      press(edge.label, () => { edge.y = edge.y === -1 ? 1 : edge.y - 1; draw(); });  // 1, 0, -1, and again
    }
    edges.forEach(edge => root.append(edge.label));  // above all lines
    const nodes = place.map(([x, y], k) => {
      const node = make("g", { transform: `translate(${x},${y})` }, root);
      const circle = make("circle", { r: 19 }, node);
      make("text", { y: 5, "text-anchor": "middle", class: "name" }, node, names[k]);
      const score = make("text", { y: y < middle[1] ? -25 : 36, "text-anchor": "middle", class: "halo" }, node);
      return { circle, score };
    });

    function draw() {
      const on = edges.filter(edge => edge.on), y = on.map(edge => edge.y), m = on.length;
      const { B, f, Bf, rank, component, count } = comparisonGraph(n, on.map(edge => edge.pair), y);
      for (const edge of edges) {
        const [first, second] = edge.pair.map(k => names[k]);
        edge.line.setAttribute("aria-checked", edge.on);
        edge.drawn.setAttribute("class", `edge ${!edge.on ? "off" : edge.y ? "" : "dotted"}`);
        for (const y of [1, -1]) edge.heads[y].style.display = edge.on && edge.y === y ? "" : "none";
        edge.label.style.display = edge.on ? "" : "none";
        edge.text.textContent = ["−1", "0", "+1"][edge.y + 1];
        const meaning = [`${second} is better`, "tie", `${first} is better`][edge.y + 1];
        edge.label.setAttribute("aria-label", `label of ${first} with ${second}: ${meaning}; press to change`);
      }
      nodes.forEach(({ circle, score }, k) => {
        circle.setAttribute("class", `node part-${component[k] % 4}`);
        score.textContent = (count > 1 ? `part ${"ABCDEFGH"[component[k]] || "?"}, ` : "") + number(f[k]);
      });
      const entry = x => (x ? number(x, 0) : "0");
      fill(["pair", ...names, "y", "Bf", "y − Bf"], [
        ...on.map((edge, i) => [edge.pair.map(k => names[k]).join(", "), ...B[i].map(entry), entry(y[i]), number(Bf[i]), number(y[i] - Bf[i])]),
        ["f", ...f.map(x => number(x)), "", "", ""]]);
      const left = y.reduce((sum, label, i) => sum + (label - Bf[i]) ** 2, 0), cycles = m - rank;
      const many = (k, word) => `${k} ${word}${k === 1 ? "" : "s"}`;
      say(`${many(m, "comparison")} of ${n} items, ${many(count, "component")}: the rank of B is ${rank} = ${n} − ${count}. ` +
        (cycles ? `${many(cycles, "independent cycle")}; scores leave ${number(left)} of |y|² = ${number(dot(y, y), 0)} unexplained. `
                : m ? "No cycle, so Bf = y exactly. " : "") +
        (count > 1 ? "Scores of different components cannot be compared; each component has mean zero." : "The scores have mean zero."));
    }
    draw();
  };

  explorers.bias = (box, data) => {
    const names = data.items.map(String), ends = [1 / data.lambda[0], 1 / data.lambda[data.lambda.length - 1]];
    const crossings = zeros(data), state = { C: ends[0] ** 0.25 * ends[1] ** 0.75 };
    const ranks = C => { const { beta, scores } = pathAt(data, C); return { beta, r: scores.map(u => -u / beta) }; };
    const size = 1.25 * Math.max(1, ...ranks(ends[1]).r.map(Math.abs));
    const top = controls(box), logs = ends.map(Math.log10);
    const moveC = slider(top, "C", [logs[0], logs[1], (logs[1] - logs[0]) / 400], v => significant(10 ** v), v => { state.C = 10 ** v; draw(); });
    if (crossings.length) {
      button(top, "β just above 0", () => { state.C = crossings[0] * 0.9; draw(); });
      button(top, "β just below 0", () => { state.C = crossings[0] * 1.1; draw(); });
    }
    const row = panels(box);
    const left = plot(make("div", {}, row), "The bias β against C", 250), high = Math.max(1.1, ...data.bias) * 1.05;
    const height = 66 + 34 * names.length, room = 22 + 7 * (4 + Math.max(...names.map(name => name.length)));
    const right = plot(make("div", {}, row), "r of each item", Math.max(height, 250), { left: room, right: 80 });
    legend(box, [["square", "shade", "β ≥ 0: upside down"], ["line", "arrow", "the threshold, 1"]]);
    const say = sentence(box);
    const grid = [...Array.from({ length: 301 }, (_, k) => 10 ** (logs[0] + (k / 300) * (logs[1] - logs[0]))),
                  ...data.lambda.map(lam => 1 / lam)].sort((a, b) => a - b);
    const curve = grid.map(C => [C, pathAt(data, C).beta]), low = Math.min(-1.1, ...curve.map(p => p[1])) * 1.08;
    left.frame(ends, [low, high], "C", "bias β", true);
    right.frame([-1.1 * size, 1.1 * size], [names.length - 0.1, -0.5], "r = −u / β", "item (rank)", false);
    left.drag(C => { state.C = Math.min(Math.max(C, ends[0]), ends[1]); draw(); });

    function draw() {
      const { beta, r } = ranks(state.C), good = beta < 0, lost = Math.abs(beta) < 1e-6;
      moveC(Math.log10(state.C));
      left.clear();
      left.line([[ends[0], 0], [ends[1], 0], [ends[1], high], [ends[0], high]], "warn");
      left.line(curve, "bias");
      left.cursor(state.C);
      left.mark("circle", state.C, beta, "now", 6);
      right.clear();
      right.line([[0, -0.5], [0, names.length - 0.1]], "zero");
      names.forEach((_, j) => right.line([[-1.1 * size, j], [1.1 * size, j]], "zero"));
      const order = r.map((_, j) => j).sort((a, b) => r[b] - r[a]), level = 1e-9 * Math.max(...r.map(Math.abs)), beside = [[], []];
      r.forEach((value, j) => {
        const at = Math.max(-size, Math.min(size, value)), shape = at === value ? "circle" : value > 0 ? "right" : "left";
        const above = r.filter(other => other > value + level).length + 1;
        beside[0].push([j, `${names[j]} (${above})`]);
        if (!lost) right.mark(good || shape !== "circle" ? shape : "down", at, j, good ? "second" : "first", 7);
        beside[1].push([j, lost ? "–" : significant(value)]);
      });
      right.line([[-0.96 * size, names.length - 0.45], [-0.96 * size + 1, names.length - 0.45]], "arrow");
      beside.forEach((entries, k) => right.beside(2 * k - 1, entries));
      const words = order.map((j, k) => (k ? (Math.abs(r[order[k - 1]] - r[j]) <= level ? " = " : " > ") : "") + names[j]).join("");
      const spread = r[order[0]] - r[order[r.length - 1]];
      say(`C = ${significant(state.C)}, β = ${number(beta)}. ` + (lost ? "At β = 0 there is no ranking function."
        : good ? `β < 0: the order is ${words}` + (spread <= 1 ? ", but no two items differ by more than 1: all are tied." : ".")
        : `β ≥ 0: dividing by −β turns the order upside down, to ${words}. The package raises a DegenerateBiasError here.`));
    }
    draw();
  };

  explorers.path = (box, data) => {
    const path = rankingPath(data), lam = data.lambda, ends = [lam[lam.length - 1], lam[0]], logs = ends.map(Math.log10);
    const better = new Set(data.pairs.map(pair => pair[0])), side = 48;
    const errors = path.steps.map(value => { const { training, validation } = path.at(value); return [value, training, validation]; });
    const state = { lambda: 10 ** (0.28 * logs[0] + 0.72 * logs[1]) };
    const move = value => { state.lambda = Math.min(Math.max(value, ends[0]), ends[1]); draw(); };
    const top = controls(box);
    const moveLambda = slider(top, "λ falls", [0, 400, 1], () => significant(state.lambda), step => move(path.steps[400 - step]));
    const pair = make("span", {}, top);
    button(pair, "Least validation error", () => move(data.best));
    button(pair, "First breakpoint", () => move(ends[1]));
    const row = panels(box);
    const left = plot(make("div", {}, row), "The ranking function in the plane, and the pairs on the margin", 372), second = make("div", {}, row);
    const lines = plot(second, "Lambda times the score of each item against lambda", 206);
    const right = plot(second, "Share of pairs in the wrong order against lambda", 166);
    legend(box, [["up", "first", "better class"], ["down", "second", "other class"], ["square", "shade", "stronger shading: higher score"],
      ["line", "now strong", "pair of the thick lines"], ["circle", "lp", "training error"], ["diamond", "qp", "validation error"]]);
    const say = sentence(box);

    const spans = [0, 1].map(k => {
      const values = data.items.map(item => item[k]), room = 0.08 * (Math.max(...values) - Math.min(...values));
      return [Math.min(...values) - room, Math.max(...values) + room];
    });
    left.frame(spans[0], spans[1], "feature 1", "(a) feature 2");
    // The shading is a picture of side x side grey points, which the browser makes smooth.
    const heat = make("image", { ...left.box, preserveAspectRatio: "none" }), canvas = set(make("canvas", {}), { width: side, height: side });
    left.root.insertBefore(heat, left.root.children[1]);  // below the lines of the axes
    const brush = canvas.getContext("2d"), grey = new ImageData(side, side), place = ([low, high], k) => low + ((k + 0.5) / side) * (high - low);
    const kernels = path.rows(Array.from({ length: side * side }, (_, k) => [place(spans[0], k % side), place(spans[1], side - 1 - Math.floor(k / side))]));
    // Of lambda f, straight between knots: its values on the items there, and at 0.
    const straight = [...path.knots, [0, data.items.map(() => 0)]];
    const scaleTop = () => ends[1] / 10 ** Math.floor(Math.log10(ends[1] / state.lambda) + 1e-9);  // 1, 1/10, ... of the path
    const high = 1.15 * Math.max(0.02, ...errors.flatMap(line => line.slice(1)));
    right.frame(ends, [0, high], "λ (logarithmic axis)", "(c) wrong pairs", true, true);
    right.drag(move);
    lines.drag(x => move(Math.max(x, 0.1001 * scaleTop())));

    function follow(now) {
      const top = scaleTop(), shown = straight.filter(([value], k) => k === 0 || value <= top || straight[k + 1][0] < top);
      const values = [...shown.filter(([value]) => value <= top).map(knot => knot[1]), now.scores.map(f => now.lambda * f)].flat();
      const [low, high] = [Math.min(...values), Math.max(...values)], room = 0.06 * (high - low);
      lines.frame([0, top], [low - room, high + room], "λ (linear axis, which zooms in as λ falls)", "(b) λf of each item; ticks on top: breakpoints", false, true);
      lines.clear();
      lam.slice(0, -1).filter(value => value <= top).forEach(value => lines.line([[value, high + 0.3 * room], [value, high + room]], "thin"));
      data.items.forEach((_, j) => lines.line(shown.map(([value, g]) => [value, g[j]]),
        `${better.has(j) ? "first" : "second"} ${data.pair.includes(j) ? "strong" : "fine pale"}`));
      lines.cursor(now.lambda);
      now.scores.forEach((f, j) => lines.mark(better.has(j) ? "up" : "down", now.lambda, now.lambda * f, better.has(j) ? "first" : "second", 3));
    }

    function draw() {
      const now = path.at(state.lambda), level = kernels.map(row => dot(row, now.weights));
      const [least, most] = [Math.min(...level), Math.max(...level)];
      moveLambda(400 - path.step(state.lambda));
      level.forEach((f, k) => grey.data.set([118, 118, 118, (160 * (f - least)) / (most - least || 1)], 4 * k));
      brush.putImageData(grey, 0, 0);
      set(heat, { href: canvas.toDataURL() });
      follow(now);
      left.clear();
      now.on.forEach(i => left.line(data.pairs[i].map(j => data.items[j]), "thin"));
      left.line(data.pair.map(j => data.items[j]), "now strong");
      data.items.forEach((item, j) => left.mark(better.has(j) ? "up" : "down", ...item, better.has(j) ? "first" : "second", 5.5));
      right.clear();
      right.line(errors.map(line => [line[0], line[1]]), "lp");
      right.line(errors.map(line => [line[0], line[2]]), "qp dashed");
      right.cursor(state.lambda);
      right.mark("circle", state.lambda, now.training, "lp", 6);
      right.mark("diamond", state.lambda, now.validation, "qp", 6);
      const many = (k, word) => `${k} pair${k === 1 ? "" : "s"} ${word}`;
      say(`λ = ${significant(state.lambda)}: ${many(now.inside.length, "inside the margin")}, ${now.on.length} on it, ${now.beyond.length} beyond. ` +
        `Wrong order: ${number(100 * now.training, 1)} % of the training pairs, ${number(100 * now.validation, 1)} % of the validation pairs` +
        (now.validation <= data.best_error + 1e-9 ? ", the least there is on this path." : `; the least is ${number(100 * data.best_error, 1)} % at λ = ${significant(data.best)}.`));
    }
    draw();
  };

  explorers.pursuit = (box, data) => {
    const pursuit = rankingPursuit(data), last = data.basis[0].length, state = { mix: 0, step: 1 };
    const go = step => { state.step = Math.min(Math.max(Math.round(step), 0), last); draw(); };
    const best = () => data.errors[state.mix].indexOf(Math.min(...data.errors[state.mix]));
    const top = controls(box);
    const moveStep = slider(top, "step", [0, last, 1], v => `${v} of ${last}`, go);
    choice(top, "mix", data.mix.map(String), k => { state.mix = k; draw(); });
    const both = make("span", {}, top);
    button(both, "Next function", () => go(state.step + 1));
    button(both, "Least validation error", () => go(best()));
    const row = panels(box), first = make("div", {}, row), second = make("div", {}, row);
    const scores = plot(first, "Scores of the items and the function of this step, with the centres of its parts", 260);
    const gains = plot(first, "What each function of the dictionary would take from the loss", 150);
    const left = plot(second, "The residual of each item, and the mean of each query", 200);
    const errors = plot(second, "Training loss and validation error along the steps", 210);
    legend(box, [["up", "first", "query 1"], ["down", "second", "query 2"], ["line", "now", "f"], ["up", "first faint", "smaller: validation items"],
      ["diamond", "now", "centre of a function"], ["circle", "lp", "training loss"], ["square", "qp", "validation error"]]);
    const say = sentence(box), looks = [["up", "first"], ["down", "second"]], curves = ["first", "second dashed"];

    const items = [...data.train, ...data.valid], x = data.train.map(item => item[0]), extent = values => [Math.min(...values), Math.max(...values)];
    const [from, to] = extent(items.map(item => item[0])), span = [from - 0.03 * (to - from), to + 0.03 * (to - from)];
    const places = Array.from({ length: 120 }, (_, k) => span[0] + (k / 119) * (span[1] - span[0]));
    const [low, high] = extent(items.map(item => item[2])), floor = low - 0.2 * (high - low), roof = high + 0.1 * (high - low);
    const foot = floor + 0.055 * (roof - floor);  // centres are marked above the numbers of the axis
    scores.frame(span, [floor, roof], "x", "score s; f, and f at each query's level");
    errors.frame([0, last], [0, 1.05], "step", "training loss, validation error");
    errors.drag(go);

    function draw() {
      const { mix, step } = state, now = pursuit.at(mix, step), f = pursuit.curve(mix, step, places);
      const share = data.losses[mix].map(loss => loss / data.losses[mix][0]), wrong = data.errors[mix], entered = data.basis[mix].slice(0, step);
      const size = 1.1 * Math.max(...now.residual.map(Math.abs)) || 1;
      moveStep(step);
      for (const panel of [scores, gains, left, errors]) panel.clear();
      now.means.forEach((mean, q) => scores.line(places.map((a, k) => [a, f[k] + mean]), curves[q]));
      scores.line(places.map((a, k) => [a, f[k]]), "now");
      data.valid.forEach(([a, q, s]) => scores.mark(looks[q][0], a, s, `${looks[q][1]} faint`, 3));
      data.train.forEach(([a, q, s]) => scores.mark(looks[q][0], a, s, looks[q][1], 5));
      entered.forEach((j, k) => scores.mark("diamond", x[j], foot, "now", k === step - 1 ? 7 : 4));

      left.frame(span, [-size, size], "x", "residual s − f, and its mean in each query");
      left.line([[span[0], 0], [span[1], 0]], "axis");
      now.means.forEach((mean, q) => left.line([[span[0], mean], [span[1], mean]], curves[q]));
      data.train.forEach(([a, q], i) => left.mark(looks[q][0], a, now.residual[i], looks[q][1], 5));

      const taken = now.gains.map(gain => (100 * gain) / (now.loss || 1)), most = taken[now.next];
      gains.frame(span, [0, Math.max(1.2 * most, 0.12)], "centre of a function", "percent of the loss that it would take");
      taken.forEach((part, j) => gains.line([[x[j], 0], [x[j], part]], "thin"));
      gains.mark("diamond", x[now.next], most, "now", 5);

      errors.line(share.map((value, k) => [k, value]), "lp");
      errors.line(wrong.map((value, k) => [k, value]), "qp dashed");
      errors.cursor(step);
      errors.mark("circle", step, share[step], "lp", 6);
      errors.mark("square", step, wrong[step], "qp", 5);
      const percent = value => `${number(100 * value, 1)}\u00a0%`, where = j => `at ${number(x[j])}`;
      say(`Mix ${data.mix[mix]}: the mean residual of a query counts ${pursuit.weights(mix).map(percent).join(" or ")} of what deviations from it count. Step ${step}: ` +
        (step ? `the function ${where(entered[step - 1])} has entered` : "no function yet") + `; ${percent(share[step])} of the first loss is left. ` +
        `Validation error ${percent(wrong[step])}` + (wrong[step] <= wrong[best()] + 1e-9 ? ", the least." : `; the least is ${percent(wrong[best()])} at step ${best()}.`) +
        (step < last ? ` Next: the function ${where(data.basis[mix][step])}.` : ""));
    }
    draw();
  };

  explorers.match = (box, data) => {
    const names = data.players.map(String), lead = `prior lead of ${names[0]}`, centre = (data.mean[0] + data.mean[1]) / 2, far = 6;
    const state = { gap: data.mean[0] - data.mean[1], std: data.std.slice() };
    const at = gap => oneMatch([centre + gap / 2, centre - gap / 2], state.std), gaps = Array.from({ length: 33 }, (_, k) => (k / 16 - 1) * far);
    const percent = x => `${number(100 * x, 1)}\u00a0%`;
    const go = gap => { state.gap = Math.min(Math.max(gap, -far), far); draw(); };
    const top = controls(box);
    const moveGap = slider(top, lead, [-far, far, 0.1], v => number(v, 1), go);
    const moveStd = names.map((name, i) => slider(top, `prior std of ${name}`, [-1, 2, 0.05], v => number(2 ** v),
      v => { state.std[i] = 2 ** v; widths(); draw(); }));
    const both = make("span", {}, top);
    button(both, "The favourite won", () => go(far / 2));
    button(both, "The outsider won", () => go(-far / 2));
    const row = panels(box), first = make("div", {}, row), second = make("div", {}, row);
    const scores = names.map((name, i) => plot(first, `Score of ${name}: prior, exact posterior, EP and reverse-KL`, 210));
    const margins = { right: 20 + 8 * Math.max(...names.map(name => name.length)) };
    const spreads = plot(second, "Standard deviations after the match against the prior lead", 210, margins);
    const evidences = plot(second, "Log evidence and bound against the prior lead", 210, margins);
    for (const panel of [spreads, evidences]) panel.drag(go);
    legend(box, [["line", "tie dashed", "prior"], ["circle", "now open", "exact posterior (grey)"], ["square", "ep", "EP"], ["diamond", "kl", "reverse-KL"]]);
    const fill = table(box, `Before and after the match. Lead: ${names.join(" − ")}. Next win: chance of ${names[0]}. Evidence: its logarithm, or the bound of reverse-KL.`), say = sentence(box);
    const methods = [["exact", "circle", "now open", "area"], ["ep", "square", "ep", "ep"], ["kl", "diamond", "kl", "kl chain"]];
    const low = () => 1.1 * along[0].kl.evidence;
    let along = [];

    /** What depends on the prior standard deviations alone: the curves along the slider, and the axes. */
    function widths() {
      along = gaps.map(at);
      const reach = far / 2 + 2.2 * Math.max(...state.std);
      scores.forEach((panel, i) => panel.frame([centre - reach, centre + reach], [0, 0.46 / along[0].kl.std[i]], "score",
        `density of ${names[i]}, who ${["won", "lost"][i]}`));
      spreads.frame([-far, far], [0, 1.25 * Math.max(...state.std)], lead, "std after the match");
      evidences.frame([-far, far], [low(), -0.08 * low()], lead, "log evidence; bound of reverse-KL");
    }

    function draw() {
      const { gap } = state, now = at(gap), { prior, exact, ep, kl } = now;
      moveGap(gap);
      moveStd.forEach((move, i) => move(Math.log2(state.std[i])));
      scores.forEach((panel, i) => {
        const curve = ({ mean, std }, f) => Array.from({ length: 121 }, (_, k) => mean[i] + (k / 12 - 5) * std[i]).map(s => [s, f(s)]);
        panel.clear();
        panel.line(curve(prior, bell(prior.mean[i], prior.std[i])), "tie dashed");
        for (const [name, shape, look, line] of methods) {
          const { mean, std } = now[name], f = name === "exact" ? exact.densities[i] : bell(mean[i], std[i]);
          panel.line(curve(now[name], f), line);
          panel.mark(shape, mean[i], f(mean[i]), look, name === "exact" ? 8 : 4);
        }
      });
      const draws = (panel, value) => {
        for (const [name, shape, look, line] of methods) {
          panel.line(gaps.map((x, k) => [x, value(along[k][name])]), name === "exact" ? "broad" : line);
          panel.mark(shape, gap, value(now[name]), look, name === "exact" ? 8 : 4);
        }
      };
      for (const panel of [spreads, evidences]) panel.clear();
      names.forEach((_, i) => draws(spreads, one => one.std[i]));
      draws(evidences, one => one.evidence);
      for (const panel of [spreads, evidences]) panel.cursor(gap);
      spreads.beside(1, names.map((name, i) => [along[along.length - 1].exact.std[i], name]));

      const line = (title, value, digits) => [title, ...[prior, exact, ep, kl].map(one => number(value(one), digits))];
      fill(["quantity", "prior", "exact", "EP", "reverse-KL"], [
        ...names.flatMap((name, i) => [line(`${name}: mean`, one => one.mean[i]), line(`${name}: std`, one => one.std[i])]),
        line("lead: mean", one => one.difference[0]), line("lead: std", one => one.difference[1]),
        line("next win", one => one.again, 3),
        ["evidence", "–", ...[exact, ep, kl].map(one => number(one.evidence))]]);
      const short = names.map((name, i) => `${percent(1 - kl.std[i] / exact.std[i])} (${name})`).join(" and ");
      say(`${names[0]}'s win had a chance of ${percent(prior.again)}: ` + (Math.abs(gap) < 0.05 ? "there was no favourite. " : gap > 0 ? "the favourite won. " : "the outsider won. ") +
        `EP has the exact means, standard deviations and log evidence, ${number(exact.evidence, 3)}. The standard deviations of reverse-KL are ${short} too small, its bound is ${number(exact.evidence - kl.evidence, 3)} lower. ` +
        `${names[0]} would win again with ${percent(exact.again)}, by EP ${percent(ep.again)}, by reverse-KL ${percent(kl.again)}.`);
    }
    widths();
    draw();
  };

  explorers.timelines = (box, data) => {
    const names = data.players, { years, mean, std } = data, { at, chance, pieces } = scoreTimelines(data);
    const both = k => std[state.chosen[0]][k] && std[state.chosen[1]][k];
    const state = { chosen: (data.chosen || names.slice(0, 2)).map(name => names.indexOf(name)), month: 0, span: years };
    const time = () => Math.min(Math.max(state.month / 12, state.span[0]), state.span[1]);  // the cursor moves by whole months
    const month = m => `${"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ")[((m % 12) + 12) % 12]} ${Math.floor(m / 12)}`;
    const months = () => [Math.ceil(12 * state.span[0] - 0.1), Math.floor(12 * state.span[1] + 0.1)], percent = x => `${number(100 * x, 1)}\u00a0%`;
    const go = m => { state.month = Math.min(Math.max(Math.round(m), months()[0]), months()[1]); draw(); };
    const looks = [["circle", "second", "second"], ["square", "first", "first dashed"], ["diamond", "lp", "lp chain"], ["up", "qp", "qp dots"]];
    const slots = looks.slice(0, Math.min(4, names.length));
    while (state.chosen.length < slots.length) state.chosen.push(-1);

    const top = controls(box), every = names.map((name, i) => [i, name]);
    const pick = slots.map((look, slot) => picker(top, `${["first", "second", "third", "fourth"][slot]} curve`,
      slot < 2 ? every : [[-1, "–"], ...every], look, i => {
        state.chosen[slot] = i;
        axes();
        if (slot < 2 && !state.chosen.slice(0, 2).every(k => at(k, time()))) meet(); else go(state.month);
      }));
    const moveMonth = slider(top, "month", [0, 1, 1], month, go), input = top.querySelector("input");
    const row = panels(box), first = make("div", {}, row);
    const scores = plot(first, "Scores over the years, mean and one standard deviation up and down", 300), said = legend(first);
    const results = plot(make("div", {}, row), "Chance that the first beats the second, over the years", 300);
    for (const panel of [scores, results]) panel.drag(x => go(12 * x));
    const say = sentence(box);

    /** Both axes hold the curves that are shown, and no more. */
    function axes() {
      const shown = state.chosen.filter(i => i >= 0), used = pieces(k => shown.some(i => std[i][k])).flat();
      const ends = [-1, 1].map(sign => sign * Math.max(...shown.flatMap(i => used.flatMap(k => (std[i][k] ? [sign * mean[i][k] + std[i][k]] : [])))));
      const room = 0.06 * (ends[1] - ends[0]);
      state.span = [years[used[0]], Math.max(years[used[used.length - 1]], years[used[0]] + 1 / 6)];
      set(input, { min: months()[0], max: months()[1] });
      scores.frame(state.span, [ends[0] - room, ends[1] + room], "year", "score: mean ± one std");
      results.frame(state.span, [0, 105], "year", `chance that ${state.chosen.slice(0, 2).map(i => names[i]).join(" beats ")}, in percent`);
      state.chosen.forEach((i, slot) => pick[slot](i, shown));
    }

    function draw() {
      const now = time(), values = state.chosen.map(i => (i < 0 ? null : at(i, now)));
      moveMonth(state.month);
      for (const panel of [scores, results]) { panel.clear(); panel.cursor(now); }
      state.chosen.forEach((i, slot) => {
        if (i < 0) return;
        for (const piece of pieces(k => std[i][k])) {
          const edge = sign => piece.map(k => [years[k], mean[i][k] + sign * std[i][k]]);
          scores.line([...edge(1), ...edge(-1).reverse()], `${slots[slot][1]} spread`);
          scores.line(edge(0), slots[slot][2]);
        }
        if (values[slot]) scores.mark(slots[slot][0], now, values[slot].mean, slots[slot][1], 5);
      });
      for (const piece of pieces(both))
        results.line(piece.map(k => [years[k], 100 * chance(...state.chosen.slice(0, 2).map(i => at(i, years[k])))]), slots[0][2]);
      const [one, other] = values, met = one && other && chance(one, other);
      if (met !== null) results.mark(slots[0][0], now, 100 * met, slots[0][1], 5);
      const texts = state.chosen.flatMap((i, slot) => (i < 0 ? [] : [[slots[slot][0], slots[slot][1],
        `${names[i]} ${values[slot] ? `${number(values[slot].mean)} ± ${number(values[slot].std)}` : "has no curve then"}`]]));
      said(texts);
      say(`${month(state.month)}: ` + (met === null ? `${names[state.chosen[0]]} and ${names[state.chosen[1]]} could not meet.`
        : `if they met, ${names[state.chosen[0]]} would beat ${names[state.chosen[1]]} with a chance of ${percent(met)}.`), ` Scores: ${texts.map(entry => entry[2]).join(", ")}.`);
    }

    /** To the middle of the time when the first two could meet. */
    function meet() {
      const shared = pieces(both).flat();
      go(12 * (shared.length ? years[shared[shared.length >> 1]] : (state.span[0] + state.span[1]) / 2));
    }
    axes();
    meet();
  };

  explorers.analogy = (box, data) => {
    const names = data.proportions.map(([name]) => name), state = { name: 0 };
    const knob = () => PROPORTIONS[names[state.name]][0], example = () => data.examples[names[state.name]];
    const stretched = () => (knob() === "stretch" ? state.stretch / 100 : 1);

    /** Points on their grid, made finer until a step is at most 1/20. */
    function load({ points, denominator, stretch = 100, tolerance }) {
      const fine = Math.ceil(20 / denominator), q = fine * denominator;
      const epsilon = tolerance === undefined ? Math.round(q / 5) : fine * tolerance;
      Object.assign(state, { q, points: points.map(pair => pair.map(x => fine * x)), stretch, tolerance: epsilon, chosen: 0 });
      rebuild();
    }

    const top = controls(box);
    const pick = picker(top, "proportion", names.map((name, k) => [k, name]), null, k => { state.name = k; draw(); });
    const moves = {};
    for (const [name, range, show] of [["stretch", [100, 300, 5], v => `× ${number(v / 100)}`], ["tolerance", [0, 1, 1], v => said(v)]]) {
      const move = slider(top, name, range, show, v => { state[name] = v; draw(); });
      moves[name] = { move, row: top.lastElementChild, input: top.lastElementChild.querySelector("input") };
    }
    const size = make("span", {}, top), loads = make("span", {}, top);
    button(size, "Add a pair", () => {
      const spots = [[0.9, 0.4], [0.2, 0.8], [0.6, 0.1], [0.3, 0.3], [0.1, 0.6], [0.8, 0.7], [1, 0]].map(pair => pair.map(x => Math.round(x * state.q)));
      if (state.points.length < 6) state.points.push(spots.find(([a, b]) => !state.points.some(pair => pair[0] === a && pair[1] === b)));
      rebuild();
    });
    button(size, "Remove a pair", () => { if (state.points.length > 2) state.points.pop(); rebuild(); });
    button(loads, "Start again", () => load(data));
    button(loads, "Counterexample", () => load(example()));
    const against = loads.lastElementChild;
    const row = panels(box), first = make("div", {}, row), second = make("div", {}, row);
    const line = plot(first, "The differences a − b of the pairs", 124);
    const square = plot(first, "The pairs (a, b) in the unit square", 348);
    square.root.setAttribute("role", "group");  // it holds what can be moved
    const fill = table(second, "Degrees of analogy between the pairs, rounded; the verdict is exact"), say = sentence(second);
    const body = second.querySelector("tbody"), grips = [line, square].map(panel => ({ panel, all: make("g", {}, panel.root), held: -1 }));
    square.frame([-0.05, 1.05], [-0.05, 1.05], "a", "b; on the line, a = b");

    const text = ([n, d]) => `${n < 0n ? "−" : ""}${n < 0n ? -n : n}${d === 1n ? "" : `/${d}`}`;
    /** Steps of the grid as readers see them: hundredths where these are exact. */
    const said = k => (100 % state.q ? text(fraction(BigInt(k), BigInt(state.q))) : number(k / state.q));
    const within = (x, low, high) => Math.min(Math.max(x, low), high), difference = ([a, b]) => a - b;
    const put = (k, a, b) => { Object.assign(state, { chosen: k }).points[k] = [a, b].map(x => within(Math.round(x), 0, state.q)); draw(); };
    /** Across the levels of a - b, as far as the square reaches. */
    const shift = (k, gap) => {
      const [a, b] = state.points[k], { q } = state, u = within(Math.round(gap), -q, q), there = within(Math.round((a + b + u) / 2), Math.max(0, u), Math.min(q, q + u));
      put(k, there, there - u);
    };
    const pulls = [(k, x) => shift(k, (state.q * line.x.invert(x)) / stretched()),
      (k, x, y) => put(k, state.q * square.x.invert(x), state.q * square.y.invert(y))];
    grips.forEach((grip, side) => {
      const { root } = grip.panel;
      root.addEventListener("pointerdown", event => { if (event.isPrimary) grip.held = grip.marks.findIndex(mark => mark.contains(event.target)); });
      drag(root, (x, y) => { if (grip.held >= 0) pulls[side](grip.held, x, y); }, grip.all);
    });

    /** A grip for each pair, on the line and in the square; the keyboard finds those in the square. */
    function rebuild() {
      state.chosen = Math.min(state.chosen, state.points.length - 1);
      grips.forEach((grip, side) => {
        grip.all.replaceChildren();
        grip.marks = state.points.map((_, k) => {
          const mark = make("g", { class: "grip press" }, grip.all);
          make("circle", { r: 17, fill: "transparent" }, mark);
          make("circle", { r: 10, class: "label" }, mark);
          make("text", { y: 4.5, "text-anchor": "middle" }, mark, k + 1);
          if (side) set(mark, { tabindex: 0, role: "slider", "aria-valuemin": -1, "aria-valuemax": 1,
            "aria-label": `pair ${k + 1}: arrows to the left and right move a, up and down move b` });
          mark.addEventListener("keydown", event => {
            const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] }[event.key], [a, b] = state.points[k];
            if (step) { event.preventDefault(); put(k, a + step[0], b + step[1]); }
          });
          return mark;
        });
      });
      draw();
    }

    function place() {
      const { points, q, chosen } = state, stretch = stretched(), u = points.map(difference);
      line.frame([-stretch, stretch], [1, 0], "a − b" + (stretch === 1 ? "" : ", stretched"), "differences of the pairs");
      line.clear();
      line.line([[0, 0], [0, 1]], "thin");
      square.clear();
      square.line([[0, 0], [1, 1]], "thin");
      if (u[chosen] && knob() === "stretch") square.line([0, 1].map(x => [x, x - u[chosen] / q]), "thin dots");
      // Pairs of about the same difference stand in rows, one above the other.
      const at = u.map(gap => line.x((gap * stretch) / q)), rows = stacked(at, 21);
      const high = Math.min(21, 36 / Math.max(1, ...rows));
      points.forEach(([a, b], k) => {
        const [x, y] = [square.x(a / q), square.y(b / q)], names = [said(a), said(b), said(a - b)];
        set(grips[0].marks[k], { transform: `translate(${at[k]},${line.box.y + line.box.height - 11 - high * rows[k]})` });
        set(grips[1].marks[k], { transform: `translate(${x},${y})`, "aria-valuenow": (a - b) / q, "aria-valuetext": `a ${names[0]}, b ${names[1]}, difference ${names[2]}` });
      });
    }

    function draw() {
      const { points, chosen, q } = state, [name, note] = data.proportions[state.name];
      const K = analogyGram(name, points, state), found = semidefinite(K), value = ([n, d]) => Number(n) / Number(d);
      pick(state.name);
      moves.tolerance.input.max = q;
      for (const [key, { move, row }] of Object.entries(moves)) { move(state[key]); row.style.display = key === knob() ? "" : "none"; }
      against.style.display = example() ? "" : "none";
      place();
      const entry = part => (part[1] === 1n ? text(part) : number(value(part))), pivot = part => (part[1] === 1n ? text(part) : significant(value(part)));
      fill(["pair", ...points.map((_, k) => `${k + 1}`), found.psd ? "pivot" : "x"],
        K.map((entries, k) => [`${k + 1}`, ...entries.map(entry), found.psd ? pivot(found.pivots[k]) : text([found.x[k], 1n])]));
      K.forEach((entries, k) => entries.forEach((part, j) => {
        const share = within(45 * Math.abs(value(part)), 0, 45);
        const cell = body.rows[k].cells[j + 1];
        cell.className = "degree";
        cell.style.background = `color-mix(in srgb, var(--x-${part[0] < 0n ? "vermillion" : "blue"}) ${share.toFixed(1)}%, transparent)`;
      }));
      const [a, b] = points[chosen];
      say(`Pair ${chosen + 1} is (${said(a)}, ${said(b)}), its difference ${said(a - b)}. ` + (found.psd
        ? `This matrix is positive semi-definite: no pivot is negative; its rank is ${found.rank}.`
        : `This matrix is not positive semi-definite: x = (${found.x.map(n => text([n, 1n])).join(", ")}) has x′Kx = ${text(found.value)}.`) +
        (note ? ` ${note}` : ""));
    }
    load(data);
  };

  explorers.covariance = (box, data) => {
    const { times, span } = data, names = Object.keys(data.functions), state = {};
    const grid = Array.from({ length: 241 }, (_, k) => span[0] + (k / 240) * (span[1] - span[0]));
    const load = () => Object.assign(state, { name: data.chosen, time: data.time, y: data.y.slice(),
      settings: Object.fromEntries(names.map(name => [name, { ...data.functions[name] }])) });
    const setting = () => state.settings[state.name];
    const covariance = name => COVARIANCES[name](state.settings[name].variance, state.settings[name].lengthscale, data.boundaries);
    const go = time => { state.time = Math.round(10 * Math.min(Math.max(time, span[0]), span[1])) / 10; draw(); };
    load();

    const top = controls(box);
    const pick = picker(top, "covariance function", names.map((name, k) => [k, name]), null, k => { state.name = names[k]; draw(); });
    const moveTime = slider(top, "time", [...span, 0.1], v => number(v, 1), go);
    const moveScale = slider(top, "length scale ℓ", [-2, 4, 0.1], v => number(2 ** v), v => { setting().lengthscale = 2 ** v; draw(); });
    const scaleRow = top.lastElementChild;
    const moveVariance = slider(top, "variance σ²", [-4, 4, 0.1], () => significant(setting().variance),
      v => { setting().variance = data.functions[state.name].variance * 2 ** v; draw(); });
    const both = make("span", {}, top);
    button(both, "Start again", () => { load(); draw(); });
    button(both, "No results", () => { state.y.fill(0); draw(); });
    make("p", {}, box, "Press a circle to change the result at its time: win, loss, or no match. Drag in a figure to choose a time.");
    const row = panels(box), first = make("div", {}, row), second = make("div", {}, row), margins = { right: 8 };
    const strip = make("svg", { viewBox: "0 0 340 34", role: "group", "aria-label": "Results over time: each circle is a button" }, first);
    const scores = plot(first, "Score over time: mean and one standard deviation up and down, given the results", 286, margins);
    const shape = plot(second, "Covariance of the score at the chosen time with the score at every time", 160, margins);
    const stems = plot(second, "Weight of each result in the mean at the chosen time", 160, margins);
    for (const panel of [scores, shape, stems]) panel.drag(go);
    legend(box, [["up", "second", "win, y = 1"], ["down", "first", "loss, y = −1"], ["line", "now", "mean, with ± one std (shaded)"],
      ["line", "tie dashed", "± one std without results"]]);
    const fill = table(box, "Score at the chosen time, and log evidence of all results, for each function"), say = sentence(box);

    scores.frame(span, [-1, 1], "time", "score");
    const spots = times.map((time, n) => {
      const node = make("g", { role: "button", tabindex: 0, class: "press", transform: `translate(${scores.x(time)},17)` }, strip);
      make("circle", { r: 11, class: "label" }, node);
      const marks = [[-1, "down", "first"], [0, "circle", "tie"], [1, "up", "second"]].map(([y, shape, look]) => [y, mark(node, shape, 0, 0, look, y ? 6 : 2)]);
      press(node, () => { state.y[n] = state.y[n] === -1 ? 1 : state.y[n] - 1; draw(); });  // 1, 0, -1, and again
      return { node, marks };
    });

    function draw() {
      const { name, time, y } = state, k = covariance(name), ids = times.flatMap((_, n) => (y[n] ? [n] : []));
      const given = other => scorePosterior(covariance(other), ids.map(n => times[n]), ids.map(n => y[n]));
      const posterior = given(name), { mean, std, weights } = posterior.at(time), curve = grid.map(posterior.at), prior = t => Math.sqrt(k(t, t));
      pick(names.indexOf(name));
      moveTime(time);
      moveVariance(Math.log2(setting().variance / data.functions[name].variance));
      scaleRow.style.display = setting().lengthscale ? "" : "none";
      if (setting().lengthscale) moveScale(Math.log2(setting().lengthscale));
      spots.forEach(({ node, marks }, n) => {
        marks.forEach(([label, drawn]) => { drawn.style.display = label === y[n] ? "" : "none"; });
        node.setAttribute("aria-label", `time ${times[n]}: ${["loss", "no match", "win"][y[n] + 1]}; press to change`);
      });

      const size = 2 ** (Math.ceil(2 * Math.log2(1.1 * Math.max(1.1, ...grid.map(prior), ...curve.map(one => Math.abs(one.mean) + one.std)))) / 2);  // few sizes: the axis seldom moves
      scores.frame(span, [-size, size], "time", "score");
      shape.frame(span, [0, 1.15 * Math.max(0.06, ...grid.map(t => k(time, t)))], "time", `covariance with the score at time ${number(time, 1)}`);
      stems.frame(span, [1.3 * Math.min(0, ...weights), 1.3 * Math.max(0.2, ...weights)], "time", `weight of each result in the mean at time ${number(time, 1)}`);
      for (const panel of [scores, shape, stems]) { panel.clear(); panel.cursor(time); }
      const edge = sign => grid.map((t, i) => [t, curve[i].mean + sign * curve[i].std]);
      scores.line([...edge(1), ...edge(-1).reverse()], "now spread");
      for (const sign of [-1, 1]) scores.line(grid.map(t => [t, sign * prior(t)]), "tie dashed");
      scores.line(grid.map((t, i) => [t, curve[i].mean]), "now");
      const looks = { 1: ["up", "second"], "-1": ["down", "first"] };
      ids.forEach(n => scores.mark(looks[y[n]][0], times[n], y[n], looks[y[n]][1], 4));
      scores.mark("circle", time, mean, "now", 5);
      shape.line(grid.map(t => [t, k(time, t)]), "now");
      stems.line([[span[0], 0], [span[1], 0]], "thin");
      ids.forEach((n, i) => {
        stems.line([[times[n], 0], [times[n], weights[i]]], "thin");
        stems.mark(looks[y[n]][0], times[n], weights[i], looks[y[n]][1], 5);
      });

      fill(["function", "mean", "std", "log evidence"], names.map(other => {
        const found = given(other), { mean, std } = found.at(time);
        return [other, number(mean), number(std), number(found.evidence)];
      }));
      const many = (count, one, more) => `${count} ${count === 1 ? one : more}`, results = ids.map(n => y[n]);
      const most = weights.indexOf(Math.max(...weights)), equal = Math.max(...weights) - Math.min(...weights) < 1e-9;
      say(`${name[0].toUpperCase()}${name.slice(1)}, given ${many(results.filter(label => label > 0).length, "win", "wins")} and ${many(results.filter(label => label < 0).length, "loss", "losses")}: ` +
        `the score at time ${number(time, 1)} is ${number(mean)} ± ${number(std)} (without results 0.00 ± ${number(prior(time))}). The log evidence is ${number(posterior.evidence)}. ` +
        (!ids.length ? "" : ids.length > 1 && equal ? `Every result has the weight ${number(weights[0])} in the mean.`
          : `The result at time ${times[ids[most]]} has the largest weight in the mean, ${number(weights[most])}.`));
    }
    draw();
  };

  explorers.league = (box, data) => {
    const names = data.players.map(String), n = names.length, m = data.matches.length, start = 1200, unit = 400 / Math.log(10);
    const [least, most] = [4, 200], state = { matches: data.matches.map(match => match.slice()), k: data.k };
    const looks = [["circle", "second", "second"], ["square", "first", "first dashed"], ["diamond", "lp", "lp chain"], ["up", "qp", "qp dots"]];
    const pick = list => list.map(j => names[j]).join(", ");
    const go = k => { state.k = Math.round(Math.min(Math.max(k, least), most)); draw(); };
    const top = controls(box), moveK = slider(top, "Elo's k", [least, most, 1], String, go), both = make("span", {}, top);
    button(both, "Start again", () => { Object.assign(state, { matches: data.matches.map(match => match.slice()), k: data.k }); draw(); });
    button(both, "Reverse the order", () => { state.matches.reverse(); draw(); });
    make("p", {}, box, "Press a result to change it. The arrow next to it moves the match one place earlier.");
    const row = panels(box), first = make("div", {}, row), second = make("div", {}, row);
    const list = make("ol", { class: "explorer-matches" }, first);
    const lines = state.matches.map((_, place) => {
      const line = make("li", {}, list), result = make("button", { type: "button" }, line), earlier = make("button", { type: "button" }, line, "↑");
      result.addEventListener("click", () => {
        const match = state.matches[place];
        match[2] = match[2] === -1 ? 1 : match[2] - 1;  // 1, 0, -1, and again
        draw();
      });
      earlier.addEventListener("click", () => {
        state.matches.splice(place - 1, 2, ...state.matches.slice(place - 1, place + 1).reverse());
        draw();
        lines[place - 1][place > 1 ? 1 : 0].focus();  // the match takes the focus along
      });
      if (!place) earlier.style.visibility = "hidden";
      return [result, earlier];
    });
    const history = plot(first, "Elo rating of each player after each match", 220);
    const ranges = plot(second, "Elo rating in this order, in all orders, and Bradley–Terry score of each player", 214);
    const curves = plot(second, "Elo rating after the last match against k", 220);
    curves.drag(go);
    legend(box, [...names.map((name, j) => [looks[j][0], looks[j][1], `player ${name}`]), ["square", "shade", "Elo in all orders"], ["circle", "now open", "open: Bradley–Terry"]]);
    const fill = table(box, "Rating points around 1200. Lowest, highest: Elo over all orders of the matches. First: percentage of these orders in which the player alone has the highest Elo rating."), say = sentence(box);
    const steps = Array.from({ length: 50 }, (_, i) => least + (i / 49) * (most - least));

    function draw() {
      const { matches, k } = state, path = eloRatings(n, matches, k), elo = path[m], all = eloOrders(n, matches, k);
      const { scores, unbeaten } = bradleyTerry(n, matches), bt = scores && scores.map(f => start + unit * f);
      const words = ([a, b, y]) => [`${names[b]} beats ${names[a]}`, `${names[a]} and ${names[b]} tie`, `${names[a]} beats ${names[b]}`][y + 1];
      moveK(k);
      lines.forEach(([result, earlier], place) => {
        result.textContent = words(matches[place]);
        result.setAttribute("aria-label", `match ${place + 1}: ${words(matches[place])}; press to change`);
        earlier.setAttribute("aria-label", `move match ${place + 1}, ${words(matches[place])}, one place earlier`);
      });
      const extent = values => 2 ** (Math.ceil(2 * Math.log2(1.15 * Math.max(8, ...values.map(r => Math.abs(r - start))))) / 2);  // few sizes: axes seldom move
      const around = size => [start - size, start + size];

      history.clear();
      history.frame([0, m], around(extent(path.flat())), "match", "Elo rating after each match");
      elo.forEach((r, j) => {
        history.line(path.map((ratings, i) => [i, ratings[j]]), looks[j][2]);
        history.mark(looks[j][0], m, r, looks[j][1], 5);
      });

      ranges.clear();
      ranges.frame(around(extent([...all.low, ...all.high, ...(bt || [])])), [n - 0.4, -0.6], "rating points", "player");
      elo.forEach((r, j) => {
        ranges.line([[all.low[j], j], [all.high[j], j]], "broad");
        ranges.mark(looks[j][0], r, j, looks[j][1], 5);
        if (bt) ranges.mark(looks[j][0], bt[j], j, `${looks[j][1]} open`, 7);
      });
      ranges.beside(-1, names.map((name, j) => [j, name]));

      const last = steps.map(value => eloRatings(n, matches, value)[m]);
      curves.clear();
      curves.frame([least, most], around(extent(last.flat())), "k", "Elo rating after the last match");
      curves.cursor(k);
      elo.forEach((r, j) => {
        curves.line(steps.map((value, i) => [value, last[i][j]]), looks[j][2]);
        curves.mark(looks[j][0], k, r, looks[j][1], 5);
      });

      fill(["player", "Elo", "lowest", "highest", "first", "Bradley–Terry"], names.map((name, j) => [name, number(elo[j], 1), number(all.low[j], 1), number(all.high[j], 1),
        `${number(100 * all.first[j], 0)}\u00a0%`, bt ? number(bt[j], 1) : "–"]));
      const ranking = values => names.map((_, j) => j).sort((a, b) => values[b] - values[a])
        .map((j, i, order) => (i ? (values[order[i - 1]] - values[j] < 1e-6 ? " = " : " > ") : "") + names[j]).join("");
      const widest = all.high.map((high, j) => high - all.low[j]), j = widest.indexOf(Math.max(...widest));
      say(`With k = ${k} and this order of the matches, players ${pick(elo.map((_, j) => j))} have the Elo ratings ${elo.map(r => number(r, 1)).join(", ")}, and Elo ranks ${ranking(elo)}. ` +
        `In other orders of the same results, the rating of player ${names[j]} goes from ${number(all.low[j], 1)} to ${number(all.high[j], 1)}. ` +
        (bt ? `Bradley–Terry ranks ${ranking(bt)} in every order and for every k.`
          : `Bradley–Terry has no finite scores, because no other player won against or tied with ${unbeaten.length > 1 ? "any of the players" : "player"} ${pick(unbeaten)}.`));
    }
    draw();
  };

  explorers.benchmark = (box, { families, margin }) => {
    const state = { family: 0 }, ends = [-0.3, 1.3], within = x => Math.min(Math.max(x, ends[0]), ends[1]);
    const sizesNow = () => state.sizes.map(Math.round);
    const enter = k => { Object.assign(state, { family: k, task: 0, sizes: families[k].tasks[0].sizes.slice() }); draw(); };
    const top = controls(box), pickFamily = picker(top, "your data", families.map(({ name }, k) => [k, name]), null, enter);
    const parts = families.map(({ sizes: labels, tasks }) => {
      const before = top.children.length;
      const moves = labels.map((label, j) => {
        const logs = tasks.map(task => Math.log10(task.sizes[j])), ends = [Math.max(0, Math.min(...logs) - 1), Math.max(...logs) + 1];
        return slider(top, label, [...ends, (ends[1] - ends[0]) / 100], v => String(Math.round(10 ** v)), v => {
          state.sizes[j] = 10 ** v;
          const { nearest } = fittingTasks(tasks, sizesNow());
          if (!nearest.includes(state.task)) [state.task] = nearest;
          draw();
        });
      });
      const names = tasks.map((task, i) => [i, task.name + (labels.length ? `: ${inWords(task.sizes, labels)}` : "")]);
      const pick = picker(top, "task", names, null, i => { state.task = i; draw(); });
      return { moves, pick, rows: [...top.children].slice(before) };
    });
    const row = panels(box), first = make("div", {}, row), second = make("div", { class: "explorer-broad explorer-verdicts" }, row);
    const all = families.flatMap(({ tasks }) => tasks.flatMap(({ rows }) => rows)), most = Math.max(...families.flatMap(({ tasks }) => tasks.map(({ rows }) => rows.length)));
    const dots = plot(first, "Mean loss of each learner with its interval", 80 + 21 * most,
      { left: 22 + 6.6 * Math.max(...all.map(([learner]) => learner.length)), right: 12 });
    legend(first, [["circle", "lp", "not shown to be worse"], ["down", "first", "worse"], ["diamond", "tie", "too few replicates"],
      ["circle", "now", "non-inferior"], ["circle", "now open", "not shown to be non-inferior"], ["line", "tie dashed", "margin"]]);
    const fill = table(second, "Mean loss with its 95 % interval, the answer of the decision rules, and in how many of the tasks that fit the learner is non-inferior"), say = sentence(box);
    const verdict = ([, , , , worse, nonInferior], k) => (!k ? "lowest" : worse === null ? "undecided"
      : nonInferior ? (worse ? "slightly worse" : "non-inferior") : worse ? "worse" : "undecided");

    function draw() {
      const family = families[state.family], { tasks } = family, { rows } = tasks[state.task], last = rows.length - 0.2;
      const { fits, nearest } = fittingTasks(tasks, sizesNow()), open = fits.length ? fits : nearest;
      pickFamily(state.family);
      parts.forEach(({ moves, pick, rows }, k) => {
        rows.forEach(one => { one.style.display = k === state.family ? "" : "none"; });
        if (k !== state.family) return;
        moves.forEach((move, j) => move(Math.log10(state.sizes[j])));
        pick(state.task, tasks.map((_, i) => i).filter(i => !open.includes(i)));
      });
      dots.clear();
      dots.frame(ends, [last, -0.6], "lowest 0, constant 1", "learner");
      for (const [x, look] of [[0, "thin"], [margin, "tie dashed"], [1, "thin dots"]]) dots.line([[x, -0.6], [x, last]], look);
      rows.forEach(([, loss, low, high, worse, nonInferior], k) => {
        const at = within(loss), [shape, look] = worse === null ? ["diamond", "tie"] : worse ? ["down", "first"] : ["circle", "lp"];
        dots.line([[low, k], [high, k]], look);
        dots.mark(at < loss ? "right" : shape, at, k, `${look}${nonInferior ? "" : " open"}`, 5);
      });
      dots.beside(-1, rows.map(([learner], k) => [k, learner]));
      const decided = fits.map(i => tasks[i]).filter(({ rows }) => rows[0][4] !== null).map(({ rows }) => rows);
      const tally = learner => {
        const found = decided.flatMap(rows => rows.filter(([name]) => name === learner));
        return found.length ? `${found.filter(([, , , , , nonInferior]) => nonInferior).length} of ${found.length}` : "–";
      };
      fill(["learner", "loss (interval)", "answer", "non-inferior in"], rows.map((row, k) => {
        const [learner, loss, low, high] = row;
        return [learner, number(loss) + (k ? ` (${number(low)}\u00a0to\u00a0${number(high)})` : ""), verdict(row, k), tally(learner)];
      }));
      say(taskInWords(family, state.task, sizesNow()));
    }
    enter(0);
  };

  // ---- Start

  function start() {
    for (const box of document.querySelectorAll("div.explorer")) {
      const kind = explorers[box.dataset.explorer], source = box.querySelector("script");
      if (!kind || !source || box.classList.contains("explorer-live")) continue;
      const live = make("div", { class: "explorer-ui" });
      try {
        kind(live, JSON.parse(source.textContent));
      } catch (error) {  // the static figure stays
        console.error(`explorer ${box.dataset.explorer}:`, error);
        continue;
      }
      box.append(live);
      box.classList.add("explorer-live");
    }
  }

  if (typeof module !== "undefined") module.exports = { COVARIANCES, analogyGram, apart, bradleyTerry, comparisonGraph, eloOrders, eloRatings, fittingTasks, marginProblem, nearestTasks, oneMatch, pathAt, rankingPath, rankingPursuit, scorePosterior, scoreTimelines, semidefinite, semiorder, stacked, taskInWords, zeros, number, scale };
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
