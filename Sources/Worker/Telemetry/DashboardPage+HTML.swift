// swift-format-ignore-file

extension DashboardPage {
  /// `{{mark}}` stands for what the policy of an answer allows.
  static let html = #"""
    <!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>pushfleet</title>
    <link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%232f6feb'/%3E%3Cpath d='M3 8h7M7 4l4 4-4 4' stroke='white' stroke-width='2' fill='none' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E">
    <style nonce="{{mark}}">
    :root {
      --page: #f4f5f8; --card: #ffffff; --text: #151922; --quiet: #596273; --line: #e2e5ec; --faint: #eef0f4;
      --good: #14804a; --good-tint: #e2f5ea; --bad: #c62f36; --bad-tint: #fdeaea; --warn: #8f5b00; --warn-tint: #fdf1d6;
      --blue: #2f6feb; --red: #dd4249; --amber: #d98a00; --violet: #7d63d9; --teal: #0f8f86;
      --shadow: 0 1px 2px rgb(20 25 40 / 6%), 0 1px 6px rgb(20 25 40 / 4%);
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --page: #0e1117; --card: #161b24; --text: #e8ebf2; --quiet: #98a2b5; --line: #273040; --faint: #1f2633;
        --good: #4cc38a; --good-tint: #12301f; --bad: #ff7b80; --bad-tint: #3a171b; --warn: #f2b84b; --warn-tint: #34270d;
        --blue: #5b8dff; --red: #f2646b; --amber: #f0a93b; --violet: #a48cf5; --teal: #35bdb2;
        --shadow: none;
      }
    }
    * { box-sizing: border-box; }
    body {
      margin: 0; background: var(--page); color: var(--text);
      font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
      font-variant-numeric: tabular-nums; -webkit-font-smoothing: antialiased;
    }
    main, header { max-width: 1480px; margin: 0 auto; padding: 0 24px; }
    header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 16px; padding-top: 20px; padding-bottom: 16px; }
    h1 { font-size: 20px; letter-spacing: -.02em; margin: 0; display: flex; align-items: center; gap: 10px; }
    h1 svg { width: 26px; height: 26px; flex: none; }
    h2 { font-size: 13px; font-weight: 600; margin: 0; }
    .facts { color: var(--quiet); margin-left: auto; text-align: right; font-size: 13px; }
    .pill { display: inline-flex; align-items: center; gap: 6px; padding: 3px 11px; border-radius: 99px; font-size: 13px; font-weight: 600; white-space: nowrap; }
    .pill::before { content: ""; width: 7px; height: 7px; border-radius: 50%; background: currentcolor; }
    .good { background: var(--good-tint); color: var(--good); } .bad { background: var(--bad-tint); color: var(--bad); }
    .warn { background: var(--warn-tint); color: var(--warn); } .calm { background: var(--faint); color: var(--quiet); }
    .grid { display: grid; grid-template-columns: repeat(12, minmax(0, 1fr)); gap: 16px; padding-bottom: 40px; }
    .card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; box-shadow: var(--shadow); padding: 16px 18px; grid-column: span 12; min-width: 0; }
    .head { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 4px 16px; margin-bottom: 12px; }
    .note { color: var(--quiet); font-size: 12.5px; }
    #problems { grid-column: span 12; display: grid; gap: 8px; margin: 0; padding: 0; list-style: none; }
    #problems:empty { display: none; }
    #problems li { padding: 10px 14px; border-radius: 10px; display: flex; gap: 10px; align-items: baseline; overflow-wrap: anywhere; }
    #problems b { white-space: nowrap; }
    .tiles { grid-column: span 12; display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 16px; }
    .tile { grid-column: auto; padding: 14px 16px 0; display: flex; flex-direction: column; overflow: hidden; }
    .tile .name { color: var(--quiet); font-size: 13px; }
    .tile .value { font-size: 27px; font-weight: 650; letter-spacing: -.02em; line-height: 1.25; white-space: nowrap; }
    .tile .value small { font-size: 14px; font-weight: 500; color: var(--quiet); letter-spacing: 0; }
    .tile .more { color: var(--quiet); font-size: 12.5px; min-height: 1.45em; }
    .tile svg { display: block; width: calc(100% + 32px); height: 38px; margin: 8px -16px 0; }
    .half { grid-column: span 6; }
    .column { display: grid; gap: 16px; align-content: start; } .main { grid-column: span 8; } .side { grid-column: span 4; } .column .card { grid-column: auto; }
    .chart { position: relative; height: 236px; } .chart svg { width: 100%; height: 100%; display: block; overflow: visible; }
    .axis { stroke: var(--line); } .label { fill: var(--quiet); font-size: 11.5px; }
    .legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12.5px; color: var(--quiet); }
    .legend span { display: inline-flex; align-items: center; gap: 6px; } .legend i { width: 10px; height: 10px; border-radius: 3px; }
    .tip { position: absolute; top: 4px; pointer-events: none; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 7px 10px; font-size: 12.5px; box-shadow: 0 4px 16px rgb(0 0 0 / 16%); white-space: nowrap; z-index: 2; }
    .tip div { display: flex; gap: 14px; justify-content: space-between; } .tip i { display: inline-block; width: 9px; height: 9px; border-radius: 2px; margin-right: 6px; }
    table { border-collapse: collapse; width: 100%; }
    .scroll { overflow-x: auto; margin: 0 -18px; padding: 0 18px; }
    th { text-align: left; font-weight: 500; font-size: 12.5px; color: var(--quiet); padding: 0 12px 7px 0; white-space: nowrap; }
    td { padding: 7px 12px 7px 0; border-top: 1px solid var(--line); vertical-align: top; }
    th.n, td.n { text-align: right; white-space: nowrap; } th:last-child, td:last-child { padding-right: 0; }
    td.name { font-weight: 550; overflow-wrap: break-word; min-width: 9em; } td.words { overflow-wrap: anywhere; color: var(--quiet); }
    .code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
    .bars { display: grid; gap: 9px; margin: 0; padding: 0; list-style: none; }
    .bars li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 12px; }
    .bars .track { grid-column: span 2; height: 6px; border-radius: 3px; background: var(--faint); overflow: hidden; } .bars .track i { display: block; height: 100%; border-radius: 3px; }
    .bars .what { overflow-wrap: anywhere; } .bars .what em { color: var(--quiet); font-style: normal; font-size: 12.5px; }
    .states { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 10px; }
    .states div { background: var(--faint); border-radius: 9px; padding: 9px 11px; min-width: 0; } .states b { display: block; font-size: 20px; font-weight: 650; } .states span { color: var(--quiet); font-size: 12.5px; }
    dl { display: grid; grid-template-columns: auto 1fr; gap: 6px 16px; margin: 0; } dt { color: var(--quiet); } dd { margin: 0; text-align: right; }
    .empty { color: var(--quiet); padding: 10px 0; margin: 0; }
    footer { max-width: 1480px; margin: 0 auto; padding: 0 24px 32px; color: var(--quiet); font-size: 12.5px; } footer a { color: inherit; margin-right: 14px; }
    .stale main { opacity: .55; } .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    @media (max-width: 1100px) { .tiles { grid-template-columns: repeat(3, minmax(0, 1fr)); } .half, .main, .side { grid-column: span 12; } .side { grid-template-columns: repeat(2, minmax(0, 1fr)); } .side .card:last-child { grid-column: span 2; } }
    @media (max-width: 620px) {
      main, header, footer { padding-left: 14px; padding-right: 14px; } .grid, .tiles { gap: 10px; } .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); }
      .card { padding: 14px; } .tile { padding: 12px 14px 0; } .tile .value { font-size: 23px; } .side { grid-template-columns: minmax(0, 1fr); } .side .card:last-child { grid-column: auto; } .column { gap: 10px; }
      .facts { margin-left: 0; text-align: left; width: 100%; } .chart { height: 200px; } .states { grid-template-columns: repeat(3, minmax(0, 1fr)); } #problems li { flex-direction: column; gap: 0; }
      .scroll { margin: 0; padding: 0; } .scroll thead { display: none; } .scroll tr { display: flex; flex-wrap: wrap; gap: 3px 14px; align-items: baseline; padding: 9px 0; border-top: 1px solid var(--line); }
      .scroll tr:first-child { border-top: 0; padding-top: 0; } .scroll td { border: 0; padding: 0; } .scroll td:empty { display: none; } .scroll td.name { flex-basis: 100%; order: -1; } .scroll td.words { flex-basis: 100%; }
      .scroll td.n::before { content: attr(data-label) " "; color: var(--quiet); font-size: 12.5px; }
    }
    </style>
    </head>
    <body>
    <header>
      <h1><svg viewBox="0 0 26 26" aria-hidden="true"><rect width="26" height="26" rx="7" fill="#2f6feb"/><path d="M6 13h11M12 7l6 6-6 6" stroke="#fff" stroke-width="2.6" fill="none" stroke-linecap="round" stroke-linejoin="round"/></svg>pushfleet</h1>
      <span id="state" class="pill calm" role="status">connecting</span>
      <div class="facts" id="facts"></div>
    </header>
    <main>
      <noscript><p>This page needs JavaScript. The figures are at <a href="/metrics">/metrics</a> and <a href="/status.json">/status.json</a>.</p></noscript>
      <div class="grid">
        <ul id="problems" aria-label="Problems"></ul>
        <div class="tiles" id="tiles"></div>
        <section class="card half"><div class="head"><h2>Pushes a second</h2><div class="legend" id="rates-legend"></div></div><div class="chart" id="rates"></div></section>
        <section class="card half"><div class="head"><h2>Provider answers</h2><div class="legend" id="times-legend"></div></div><div class="chart" id="times"></div></section>
        <div class="column main">
          <section class="card"><div class="head"><h2>Applications</h2><span class="note">accepted and failed: of the last minute; the rest since the worker began</span></div><div class="scroll" id="apps"></div></section>
          <section class="card"><div class="head"><h2>How long it takes</h2><span class="note" id="percentiles-note"></span></div><div id="percentiles"></div></section>
          <section class="card"><div class="head"><h2>Dead letters by reason</h2><span class="note" id="dead-note"></span></div><div class="scroll" id="dead"></div></section>
          <section class="card"><div class="head"><h2>Credentials and connections</h2></div><div class="scroll" id="pools"></div></section>
          <section class="card"><div class="head"><h2>Campaigns</h2><span class="note">in the registry; the latest ten by name</span></div><div id="campaigns"></div></section>
        </div>
        <div class="column side">
          <section class="card"><div class="head"><h2>Outcomes</h2><span class="note" id="outcomes-note"></span></div><ul class="bars" id="outcomes"></ul></section>
          <section class="card"><div class="head"><h2>Queues</h2><span class="note">messages ready</span></div><ul class="bars" id="queues"></ul></section>
          <section class="card"><div class="head"><h2>Worker</h2></div><dl id="process"></dl></section>
        </div>
      </div>
    </main>
    <footer><a href="/metrics">/metrics</a><a href="/status.json">/status.json</a><a href="/livez">/livez</a><a href="/readyz">/readyz</a><span>Figures of this worker alone, since it began; queues, with the dead letters in theirs, and campaigns are the fleet's.</span></footer>
    <script nonce="{{mark}}">
    "use strict";
    (() => {
      const period = 2000, span = 15 * 60 * 1000, window = 60 * 1000;
      const at = id => document.getElementById(id);
      let samples = [], latest = null, failures = 0, timer = 0, from = 0;

      // Elements, never markup: names and reasons come from outside.
      function make(tag, attributes, ...parts) {
        const names = ["svg", "path", "line", "text", "g", "circle", "rect"];
        const node = names.includes(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
        for (const [name, value] of Object.entries(attributes || {})) {
          if (name === "style") Object.assign(node.style, value); else if (value != null) node.setAttribute(name, value);
        }
        node.append(...parts.flat().filter(part => part != null).map(part => typeof part === "number" ? String(part) : part));
        return node;
      }
      const put = (id, ...parts) => at(id).replaceChildren(...parts.flat().filter(part => part != null));
      const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
      const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
      const number = n => Math.abs(n) >= 1e5 ? short.format(n) : whole.format(n);
      const rate = n => n === 0 ? "0" : n < 0.1 ? "<0.1" : n < 10 ? n.toFixed(1) : number(n);
      const percent = n => n === 0 ? "0 %" : n < 0.001 ? "<0.1 %" : (100 * n).toFixed(n < 0.1 ? 1 : 0) + " %";
      const bytes = n => n < 1 << 20 ? Math.round(n / 1024) + " KiB" : (n / (1 << 20)).toFixed(n < 100 << 20 ? 1 : 0) + " MiB";
      function seconds(s) {
        if (s == null || Number.isNaN(s)) return "–";
        if (s === 0) return "0 s";
        if (s < 1) return (s * 1000).toFixed(s < 0.01 ? 1 : 0) + " ms";
        if (s < 100) return s.toFixed(s < 10 ? 1 : 0) + " s";
        if (s < 7200) return Math.round(s / 60) + " min";
        return s < 172800 ? (s / 3600).toFixed(1) + " h" : Math.round(s / 86400) + " d";
      }
      // A time that begins in a whole second tells no more than that.
      const coarse = (h, text, s) => !h.whole_seconds || s == null ? text(s) : s <= 1 ? "< 1 s" : text(Math.round(s));
      const clock = ms => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

      // Seconds below which a share of what is counted lies; what took longer than the last bound counts as the bound.
      function quantile(share, bounds, counts) {
        const sum = counts.reduce((a, b) => a + b, 0);
        if (sum <= 0) return null;
        let rest = share * sum;
        for (let i = 0; i < counts.length; i++) {
          if (rest <= counts[i] && counts[i] > 0) {
            if (i === bounds.length) return bounds[i - 1];
            const low = i ? bounds[i - 1] : 0;
            return low + (bounds[i] - low) * rest / counts[i];
          }
          rest -= counts[i];
        }
        return bounds[bounds.length - 1];
      }
      const minus = (a, b) => a.map((value, i) => value - (b ? b[i] || 0 : 0));
      const merge = parts => parts.reduce((sum, part) => sum.map((value, i) => value + part[i]), parts[0].map(() => 0));
      const histograms = (status, name) => status.times.histograms.filter(h => h.name === name);

      function sampleOf(status) {
        const totals = status.totals, answers = histograms(status, "provider_answer");
        return {
          at: Date.parse(status.at), delivered: totals.delivered, failed: totals.failed, retried: totals.retried, parked: totals.parked,
          dead: totals.dead_letters, cpu: status.process.cpu_seconds, answers: merge(answers.map(h => h.counts)), bounds: answers[0].bounds, status,
        };
      }
      // The newest of some samples that is at least so old, or the oldest there is.
      function before(ms, some = samples) {
        const last = samples[samples.length - 1], earlier = some.filter(s => s !== last);
        return earlier.findLast(s => last.at - s.at >= ms) || earlier[0] || null;
      }
      const reported = () => samples.filter(s => s.status);
      function perSecond(name, a, b) { return !a || b.at <= a.at ? 0 : Math.max(0, b[name] - a[name]) * 1000 / (b.at - a.at); }

      // Points of the last quarter of an hour, each over some ten seconds so that lines are calm.
      function points() {
        const list = [];
        let j = 0;
        for (let i = 1; i < samples.length; i++) {
          while (samples[i].at - samples[j + 1].at >= 10000 && j + 1 < i) j++;
          const a = samples[j], b = samples[i];
          if (b.at - a.at < 1000) continue;
          const counts = minus(b.answers, a.answers);
          list.push({
            at: b.at, delivered: perSecond("delivered", a, b), failed: perSecond("failed", a, b), retried: perSecond("retried", a, b),
            parked: perSecond("parked", a, b), dead: perSecond("dead", a, b), p50: quantile(.5, b.bounds, counts), p95: quantile(.95, b.bounds, counts), p99: quantile(.99, b.bounds, counts),
          });
        }
        return list;
      }

      function nice(top) {
        if (!(top > 0)) return 1;
        const unit = 10 ** Math.floor(Math.log10(top));
        return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(step => step * unit).find(value => value >= top);
      }

      const charts = {
        rates: { series: [["delivered", "accepted", "--blue"], ["failed", "failed", "--red"], ["retried", "tried again", "--amber"], ["parked", "parked", "--violet"]], isStacked: true, text: rate },
        times: { series: [["p99", "99 %", "--violet"], ["p95", "95 %", "--amber"], ["p50", "50 %", "--teal"]], isStacked: false, text: seconds },
      };
      function draw(id, list) {
        const chart = charts[id], box = at(id), width = box.clientWidth, height = box.clientHeight;
        const left = 52, right = 8, top = 8, bottom = 24, end = list.length ? list[list.length - 1].at : Date.now(), start = end - Math.min(span, Math.max(120000, list.length ? end - list[0].at : 0));
        const names = chart.series.map(series => series[0]);
        const most = nice(Math.max(0, ...list.map(p => chart.isStacked ? names.reduce((sum, name) => sum + p[name], 0) : Math.max(...names.map(name => p[name] || 0)))) * 1.05);
        const x = time => left + (width - left - right) * (time - start) / (end - start), y = value => height - bottom - (height - top - bottom) * value / most;
        const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
        const now = list[list.length - 1];
        svg.setAttribute("aria-label", now ? chart.series.map(([name, label]) => `${label} ${chart.text(now[name])}`).join(", ") : "nothing yet");
        for (const step of [0, .25, .5, .75, 1]) {
          svg.append(make("line", { class: "axis", x1: left, x2: width - right, y1: y(step * most), y2: y(step * most) }), make("text", { class: "label", x: left - 8, y: y(step * most) + 4, "text-anchor": "end" }, chart.text(step * most)));
        }
        const minutes = (end - start) / 60000, stride = minutes > 10 ? 5 : minutes > 4 ? 2 : 1;
        for (let m = 0; m <= minutes + .01; m += stride) {
          svg.append(make("text", { class: "label", x: x(end - m * 60000), y: height - 6, "text-anchor": m ? "middle" : "end" }, m ? `−${m} min` : "now"));
        }
        const floor = list.map(() => 0);
        const order = chart.isStacked ? chart.series : chart.series.slice();
        for (const [name, , color] of order) {
          const known = list.map((p, i) => ({ p, i })).filter(({ p }) => p.at >= start && p[name] != null);
          if (!known.length) continue;
          const upper = known.map(({ p, i }) => `${x(p.at).toFixed(1)},${y((chart.isStacked ? floor[i] : 0) + p[name]).toFixed(1)}`);
          if (chart.isStacked) {
            const lower = known.map(({ p, i }) => `${x(p.at).toFixed(1)},${y(floor[i]).toFixed(1)}`).reverse();
            svg.append(make("path", { d: `M${upper.join("L")}L${lower.join("L")}Z`, fill: `var(${color})`, "fill-opacity": name === "delivered" ? .22 : .85 }));
            if (name === "delivered") svg.append(make("path", { d: `M${upper.join("L")}`, fill: "none", stroke: `var(${color})`, "stroke-width": 1.8, "stroke-linejoin": "round" }));
            known.forEach(({ p, i }) => { floor[i] += p[name]; });
          } else {
            svg.append(make("path", { d: `M${upper.join("L")}`, fill: "none", stroke: `var(${color})`, "stroke-width": 1.8, "stroke-linejoin": "round" }));
          }
        }
        const mark = make("line", { class: "axis", y1: top, y2: height - bottom, visibility: "hidden" });
        svg.append(mark);
        const tip = make("div", { class: "tip", hidden: "" });
        svg.addEventListener("pointermove", event => {
          const time = start + (event.offsetX - left) / (width - left - right) * (end - start);
          const near = list.reduce((best, p) => !best || Math.abs(p.at - time) < Math.abs(best.at - time) ? p : best, null);
          if (!near) return;
          mark.setAttribute("x1", x(near.at)); mark.setAttribute("x2", x(near.at)); mark.setAttribute("visibility", "visible");
          tip.replaceChildren(make("div", {}, make("b", {}, clock(near.at))), ...chart.series.map(([name, label, color]) => make("div", {}, make("span", {}, make("i", { style: { background: `var(${color})` } }), label), make("span", {}, chart.text(near[name])))));
          tip.hidden = false;
          tip.style.left = Math.min(Math.max(x(near.at) + 12, 0), width - tip.offsetWidth) + "px";
        });
        svg.addEventListener("pointerleave", () => { tip.hidden = true; mark.setAttribute("visibility", "hidden"); });
        if (!box.querySelector(".tip:not([hidden])")) put(id, svg, tip);
        put(id + "-legend", chart.series.map(([, label, color]) => make("span", {}, make("i", { style: { background: `var(${color})` } }), label)));
      }

      function spark(list, name, color) {
        const values = list.slice(-180).map(p => p[name] || 0), most = Math.max(...values, 1e-9);
        const svg = make("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" });
        if (values.length < 2) return svg;
        const line = values.map((v, i) => `${(100 * i / (values.length - 1)).toFixed(2)},${(28 - 25 * v / most).toFixed(2)}`).join("L");
        svg.append(make("path", { d: `M${line}L100,30L0,30Z`, fill: `var(${color})`, "fill-opacity": .13 }), make("path", { d: `M${line}`, fill: "none", stroke: `var(${color})`, "stroke-width": 1.6, "vector-effect": "non-scaling-stroke" }));
        return svg;
      }
      function tile(name, value, unit, more, graph) {
        return make("section", { class: "card tile" }, make("h2", { class: "name" }, name), make("div", { class: "value" }, value, unit ? make("small", {}, " " + unit) : null), make("div", { class: "more" }, more), graph);
      }

      function table(caption, columns, rows, none) {
        if (!rows.length) return make("p", { class: "empty" }, none);
        return make("table", {}, make("caption", { class: "hidden" }, caption), make("thead", {}, make("tr", {}, columns.map(([name, kind]) => make("th", { scope: "col", class: kind }, name)))),
          make("tbody", {}, rows.map(row => make("tr", {}, row.map((cell, i) => make("td", { class: columns[i][1], "data-label": columns[i][0] }, columns[i][1] === "name" && typeof cell === "string" ? dotted(cell) : cell))))));
      }
      // Lines break before dots.
      const dotted = text => text.split(".").flatMap((part, i) => i ? [make("wbr"), "." + part] : [part]);
      function bars(id, list, none) {
        const most = Math.max(...list.map(item => item.value), 1);
        put(id, list.length ? list.map(item => make("li", {}, make("span", { class: "what" }, item.name, item.more ? make("em", {}, " " + item.more) : null), make("span", {}, item.text || number(item.value)),
          make("span", { class: "track", "aria-hidden": "true" }, make("i", { style: { width: (item.value ? Math.max(100 * item.value / most, 1) : 0) + "%", background: `var(${item.color})` } })))) : make("li", { class: "empty" }, none));
      }

      const remedy = pool => pool.remedy ? ` What to do: ${pool.remedy} (${pool.runbook}).` : "";
      function problems(status, now) {
        const list = [];
        const add = (kind, title, words) => list.push([kind, title, words]);
        if (status.live !== "ok") add("bad", "Hanging", status.live);
        if (!status.broker.connected) add("bad", "No broker", status.ready);
        if (status.broker.blocked) add("bad", "Broker blocks", "A resource alarm, memory or disk, keeps it from taking publications; requests wait unacknowledged.");
        if (status.registry && !status.registry.up) add("bad", "Registry down", "Sends to topics, groups and registrations wait; sends to provider tokens go on.");
        else if (status.registry && !status.registry.writable) add("warn", "Registry read-only", "Changes, campaigns or acknowledgements wait.");
        for (const pool of status.pools) {
          if (!pool.credential_ok) add("bad", "Credential refused", `${pool.pool}${pool.reason ? ": " + pool.reason : ""}.${remedy(pool)}`);
          else if (pool.in_trouble) add("warn", "Provider in trouble", `${pool.pool}: ${pool.reason || "no answers"}.${remedy(pool)}`);
        }
        for (const app of status.open_breakers) add("bad", "Breaker open", `${app}: an abnormal share of tokens is refused; nothing is marked as gone and campaigns are held.`);
        if (status.campaigns && status.campaigns.held) add("warn", "Campaigns held", `${status.campaigns.held} wait for an operator: pushfleet campaigns resume or cancel.`);
        if (now.stuck > 0) add("warn", "Queue confirms nothing", `${number(now.stuck)} publications wait for a queue that is full or without a leader.`);
        if (now.oldest_age_seconds > 300) add("warn", "Old request", `The oldest request has been in hand for ${seconds(now.oldest_age_seconds)}.`);
        if (now.loop_lag_seconds > 1) add("warn", "Loop late", `A shard's loop was ${seconds(now.loop_lag_seconds)} late: too little CPU, or something blocks it.`);
        for (const expiry of status.expiries) {
          const left = (Date.parse(expiry.not_after) - Date.parse(status.at)) / 1000;
          if (left < 14 * 86400) add(left < 0 ? "bad" : "warn", left < 0 ? "Certificate ended" : "Certificate ends", `${expiry.credential}: ${left < 0 ? "since" : "on"} ${expiry.not_after.slice(0, 10)}.`);
        }
        return list;
      }

      // The fleet's, as its queues' names have it.
      const prefix = status => (Object.keys(status.queues || {}).find(name => name.endsWith(".dead")) || "–").replace(/\.dead$/, "");

      // A push that was wanted no more has not failed.
      const withdrawn = ["Collapsed", "Cancelled"];
      function sums(app) {
        const sum = { delivered: 0, failed: 0, retried: 0, dead: 0 };
        const all = codes => Object.values(codes).reduce((a, b) => a + b, 0);
        for (const row of app.pushes) { sum.delivered += row.delivered; sum.failed += all(row.failed) - withdrawn.reduce((n, code) => n + (row.failed[code] || 0), 0); sum.retried += all(row.retried); sum.dead += all(row.dead_letters); }
        return sum;
      }

      function show() {
        const status = latest.status, now = status.now, totals = status.totals, list = points();
        const past = before(window), perMinute = name => perSecond(name, past, latest), last = list[list.length - 1] || {};
        const isDraining = status.ready === "draining", troubles = problems(status, now);
        const worst = troubles.some(t => t[0] === "bad") ? "bad" : troubles.length ? "warn" : "good";
        const state = at("state"), word = isDraining ? "draining" : status.ready !== "ok" ? "not ready" : worst === "good" ? "all well" : worst === "warn" ? "delivering, with trouble" : "needs attention";
        if (state.textContent !== word) state.textContent = word;
        state.className = "pill " + (isDraining ? "calm" : status.ready !== "ok" ? "bad" : worst);
        put("facts", `${status.worker} · fleet ${prefix(status)} · version ${status.version} · up ${seconds((Date.parse(status.at) - Date.parse(status.started_at)) / 1000)} · ${status.shards_ready} of ${status.shards} shards connected · ${clock(Date.parse(status.at))}`);
        put("problems", troubles.slice(0, 8).map(([kind, title, words]) => make("li", { class: kind }, make("b", {}, title), make("span", {}, words))), troubles.length > 8 ? make("li", { class: "warn" }, `and ${troubles.length - 8} more`) : null);

        const failed = perMinute("failed"), delivered = perMinute("delivered"), share = failed + delivered > 0 ? failed / (failed + delivered) : 0;
        const deadNow = status.queues ? status.queues[prefix(status) + ".dead"] : null;
        put("tiles",
          tile("Accepted", rate(last.delivered || 0), "/s", `${number(totals.delivered)} in all`, spark(list, "delivered", "--blue")),
          tile("Failed", percent(share), "", `${rate(failed)}/s · ${number(totals.failed)} in all`, spark(list, "failed", "--red")),
          tile("Tried again", rate(perMinute("retried")), "/s", `${number(totals.retried)} in all, ${number(totals.parked)} parked`, spark(list, "retried", "--amber")),
          tile("Provider answers, 95 %", ...split(seconds(last.p95)), `half within ${seconds(last.p50)}`, spark(list, "p95", "--teal")),
          tile("In hand", number(now.in_hand), "requests", now.in_hand ? `oldest ${seconds(now.oldest_age_seconds)} · ${number(now.in_flight)} on streams` : "nothing waits", null),
          tile("Dead letters", deadNow == null ? number(totals.dead_letters) : number(deadNow), deadNow == null ? "since start" : "now", `${number(totals.dead_letters)} since start, ${rate(perMinute("dead"))}/s`, spark(list, "dead", "--violet")));
        draw("rates", list);
        draw("times", list);

        const old = before(window, reported()), span = old ? (latest.at - old.at) / 1000 : 1;
        const earlier = old ? new Map(old.status.apps.map(app => [app.app, sums(app)])) : new Map();
        const held = new Map(status.holds.map(hold => [hold.app, hold.ready]));
        put("apps", table("Applications", [["Application", "name"], ["Accepted/s", "n"], ["Failed", "n"], ["Tried again", "n"], ["Dead letters", "n"], ["In hand", "n"], ["Waiting for the provider", "n"]],
          status.apps.map(app => {
            const sum = sums(app), before = earlier.get(app.app), ledger = app.ledger;
            const delivered = before ? sum.delivered - before.delivered : 0, failed = before ? sum.failed - before.failed : 0;
            return [app.app, before ? rate(delivered / span) : "–", before ? number(failed) : "–", number(sum.retried), number(sum.dead), number(ledger.in_hand), number(held.get(app.app) || 0)];
          }), "No request has come yet."));

        const codes = {};
        for (const app of status.apps) for (const row of app.pushes) for (const [code, count] of Object.entries(row.failed)) codes[code] = (codes[code] || 0) + count;
        const ended = totals.delivered + Object.values(codes).reduce((a, b) => a + b, 0);
        put("outcomes-note", `${number(ended)} since it began`);
        bars("outcomes", [{ name: "Accepted", value: totals.delivered, color: "--blue" }, ...Object.entries(codes).sort((a, b) => b[1] - a[1]).slice(0, 9).map(([name, value]) => ({ name, value, color: withdrawn.includes(name) ? "--quiet" : "--red" }))].map(item => ({ ...item, more: ended ? percent(item.value / ended) : "" })), "");

        put("dead-note", `${number(totals.dead_letters)} since it began`);
        put("dead", table("Dead letters by reason", [["Count", "n"], ["Error", "code"], ["Application", "name"], ["Reason", "words"]], status.dead_letters.slice(0, 12).map(letters => [number(letters.count), letters.error, letters.app, letters.reason]), "None: whatever was sent could be dealt with."));

        const queues = Object.entries(status.queues || {}).map(([name, value]) => ({ name, value, color: /\.(dead|quarantine)$/.test(name) ? "--red" : /\.retry\./.test(name) ? "--amber" : "--blue" }));
        for (const hold of status.holds) queues.push({ name: "hold", more: hold.app, value: hold.ready || 0, color: "--violet" });
        const shown = queues.filter(queue => queue.value > 0 || /\.(send\.|dead$|feedback$)/.test(queue.name)).sort((a, b) => b.value - a.value).slice(0, 14);
        bars("queues", shown, status.queues ? "All empty." : "The broker has not been asked yet.");

        const tones = { open: "good", idle: "calm", connecting: "calm", probing: "warn", paused: "warn", "backing off": "bad", stopped: "bad", closing: "calm", closed: "calm" };
        put("pools", table("Credentials and connections", [["Credential", "name"], ["State", ""], ["Connections", "n"], ["On streams", "n"], ["", "words"]],
          status.pools.map(pool => [pool.pool, make("span", { class: "pill " + (pool.credential_ok ? pool.in_trouble ? "warn" : tones[pool.state] : "bad") }, pool.credential_ok ? pool.state : "refused"), number(pool.connections), number(pool.streams), (pool.reason || "") + remedy(pool)]), "None is configured."));

        const names = { publish_to_answer: "Publish to answer", provider_answer: "Provider answers", broker_confirm: "Broker confirms" };
        const start = before(300000, reported()), base = start && latest.at - start.at > 20000 ? start.status.times.histograms : null;
        put("percentiles-note", base ? `of the last ${seconds((latest.at - start.at) / 1000)}` : "since it began");
        put("percentiles", table("How long it takes", [["", "name"], ["50 %", "n"], ["95 %", "n"], ["99 %", "n"]],
          status.times.histograms.map((h, i) => ({ h, counts: minus(h.counts, base && base[i].counts) })).filter(({ counts }) => counts.some(c => c > 0))
            .map(({ h, counts }) => [make("span", {}, names[h.name], h.provider ? make("span", { class: "note" }, ` ${h.provider === "apns" ? "APNs" : "FCM"}${h.lane ? " " + h.lane : ""}`) : null), ...[.5, .95, .99].map(q => coarse(h, seconds, quantile(q, h.bounds, counts)))]), "Nothing was measured yet."));

        put("campaigns", status.campaigns ? [make("div", { class: "states" }, ["running", "paused", "held", "completed", "cancelled"].map(name => make("div", { class: name === "held" && status.campaigns.held ? "bad" : null }, make("b", {}, number(status.campaigns[name] || 0)), make("span", {}, name)))),
          status.latest_campaigns.length ? make("div", { class: "scroll" }, table("Latest campaigns", [["Campaign", "code"], ["Application", "name"], ["State", ""], ["Accepted", "n"], ["Failed", "n"], ["Remaining", "n"], ["Begun", "n"]],
            status.latest_campaigns.map(c => [c.campaign.slice(0, 8), c.app, c.state, number(c.sent), number(c.failed), number(c.remaining), `${seconds(Math.max(0, Date.parse(status.at) - Date.parse(c.created_at)) / 1000)} ago`]))) : null] : make("p", { class: "empty" }, status.registry ? "The registry has not answered yet." : "No registry is configured."));

        const cpu = past ? (latest.cpu - past.cpu) * 1000 / (latest.at - past.at) : null;
        put("process", [["CPU", cpu == null ? "–" : percent(cpu) + " of a core"], ["Memory", bytes(status.process.resident_bytes)], ["Descriptors", `${number(status.process.open_fds)} of ${number(status.process.max_fds)}`], ["Loop late by at most", seconds(now.loop_lag_seconds)],
          ["Unconfirmed publications", number(now.unconfirmed)], ["Feedback events", number(totals.feedback)], ["Results", number(totals.results)], ["Requests that the trace kept", totals.trace_noted + totals.trace_left_out ? percent(totals.trace_noted / (totals.trace_noted + totals.trace_left_out)) : "–"], ["Duplicates suppressed", number(totals.duplicates_suppressed)], ["Answers that never came", number(totals.unknown)], ["Broker connections lost", number(status.broker.connections_ended)]]
          .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
      }
      function split(text) { const [value, unit] = text.split(" "); return [value, unit || ""]; }

      function silent() {
        document.body.classList.add("stale");
        at("state").className = "pill bad";
        at("state").textContent = latest ? `no answer since ${clock(latest.at)}` : "no answer";
      }

      async function ask(path) {
        const answer = await fetch(path, { signal: AbortSignal.timeout(5000), cache: "no-store" });
        if (!answer.ok) throw new Error(answer.status);
        return answer.json();
      }
      async function poll() {
        try {
          const sample = sampleOf(await ask("/status.json"));
          // Another process answers: what was counted before says nothing of it.
          if (latest && sample.status.started_at !== latest.status.started_at) samples = [];
          latest = sample;
          samples.push(sample);
          samples = samples.filter(s => sample.at - s.at <= span);
          // Whole reports of the last minutes are enough.
          for (const s of samples) if (sample.at - s.at > 330000) s.status = null;
          failures = 0;
          document.body.classList.remove("stale");
          show();
        } catch (error) {
          if (++failures > 1 || !latest) silent();
        }
        clearTimeout(timer);
        if (!document.hidden) timer = setTimeout(poll, period);
      }
      document.addEventListener("visibilitychange", () => { clearTimeout(timer); if (!document.hidden) poll(); });
      new ResizeObserver(() => { if (latest) { const list = points(); draw("rates", list); draw("times", list); } }).observe(document.body);
      (async () => {
        try {
          const history = await ask("/history.json");
          samples = history.samples.map(([at, delivered, failed, retried, parked, dead, cpu, ...answers]) => ({ at, delivered, failed, retried, parked, dead, cpu, answers, bounds: history.bounds, status: null }));
        } catch (error) { /* Then it begins with what is asked for. */ }
        poll();
      })();
    })();
    </script>
    </body>
    </html>
    """#
}
