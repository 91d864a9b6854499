// Draws the plots of the page from the data in it. Text only ever becomes text
// (textContent, or on a canvas), and nothing is asked of anybody outside.
(function () {
  "use strict";
  var state = window.weirReport = { ready: false, plots: 0, errors: [] };
  var dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2, 1, 2]];
  var glyphs = ["●", "■", "▲", "◆", "✕", "＋"];
  var drawn = [];

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }
  function show(v, unit) {
    if (v == null) return "–";
    var a = Math.abs(v);
    var s = v.toLocaleString("en", { maximumFractionDigits: a >= 1000 ? 0 : a >= 100 ? 1 : a >= 1 ? 2 : 4 });
    return unit ? s + " " + unit : s;
  }

  // aligned gives all series one x. Points of a scatter keep rows of their own.
  function aligned(plot) {
    if (plot.x) return [plot.x].concat(plot.series.map(function (s) { return s.y; }));
    var rows = [];
    plot.series.forEach(function (s, i) {
      s.x.forEach(function (x, j) { rows.push([x, i, s.y[j]]); });
    });
    rows.sort(function (a, b) { return a[0] - b[0]; });
    return [rows.map(function (r) { return r[0]; })].concat(plot.series.map(function (s, i) {
      return rows.map(function (r) { return r[1] === i ? r[2] : null; });
    }));
  }

  // shape draws the points of series i of a scatter, each series in a shape of its own.
  function shape(u, i, from, to) {
    var path = new Path2D(), size = 3 * devicePixelRatio, kind = (i - 1) % glyphs.length;
    for (var j = from; j <= to; j++) {
      if (u.data[i][j] == null) continue;
      var x = u.valToPos(u.data[0][j], "x", true), y = u.valToPos(u.data[i][j], u.series[i].scale, true);
      if (kind === 0) { path.moveTo(x + size, y); path.arc(x, y, size, 0, 2 * Math.PI); }
      else if (kind === 1) path.rect(x - size, y - size, 2 * size, 2 * size);
      else if (kind === 2) { path.moveTo(x, y - size); path.lineTo(x + size, y + size); path.lineTo(x - size, y + size); path.closePath(); }
      else if (kind === 3) { path.moveTo(x, y - size); path.lineTo(x + size, y); path.lineTo(x, y + size); path.lineTo(x - size, y); path.closePath(); }
      else {
        var a = kind === 4 ? size : 0, b = kind === 4 ? size : size * 1.3;
        path.moveTo(x - b, y - a); path.lineTo(x + b, y + a); path.moveTo(x - a, y + b); path.lineTo(x + a, y - b);
      }
    }
    return { stroke: path, fill: kind < 4 ? path : null };
  }

  // nearest is the index of the figure of series i that is closest to index j, and null
  // where none is within sight of it.
  function nearest(u, i, j) {
    var y = u.data[i], x = u.data[0], at = u.valToPos(x[j], "x");
    function close(k) { return k >= 0 && k < y.length && Math.abs(u.valToPos(x[k], "x") - at) <= 24; }
    for (var d = 0; close(j - d) || close(j + d); d++) {
      if (close(j - d) && y[j - d] != null) return j - d;
      if (close(j + d) && y[j + d] != null) return j + d;
    }
    return null;
  }

  // write puts text on a canvas, with a rim so that it can be read on anything.
  function write(c, align, text, x, y) {
    c.textAlign = align;
    c.strokeStyle = colour("panel");
    c.lineWidth = 3 * devicePixelRatio;
    c.strokeText(text, x, y);
    c.fillStyle = colour("text");
    c.fillText(text, x, y);
  }

  // label writes one in the highest row in which it covers none of those taken, kept
  // within the box; where all rows are full it is left out, and the tables have it.
  function label(c, box, taken, text, align, x) {
    var ratio = devicePixelRatio, wide = c.measureText(text).width, high = 16 * ratio, gap = 6 * ratio;
    var left = align === "center" ? x - wide / 2 : align === "right" ? x - wide : x;
    left = Math.max(box.left + 2 * ratio, Math.min(left, box.left + box.width - wide - 2 * ratio));
    for (var row = 0; 4 * ratio + (row + 1) * high <= box.height * 0.6; row++) {
      var free = taken.every(function (t) { return t.row !== row || left > t.right + gap || left + wide + gap < t.left; });
      if (!free) continue;
      taken.push({ row: row, left: left, right: left + wide });
      write(c, "left", text, left, box.top + 4 * ratio + row * high);
      return;
    }
  }

  // logSplits are the places 1, 2 and 5 of each power of ten within a scale; all nine
  // digits where that would be fewer than three, and only the powers where it is many.
  function logSplits(min, max) {
    function at(digits) {
      var list = [];
      for (var e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++) {
        digits.forEach(function (d) {
          var v = e < 0 ? d / Math.pow(10, -e) : d * Math.pow(10, e);
          if (v >= min && v <= max) list.push(v);
        });
      }
      return list;
    }
    var list = at([1, 2, 5]);
    if (list.length < 3) return at([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    return list.length > 12 ? at([1]) : list;
  }

  // marks draws bands and lines over the plot, with what they stand for.
  function marks(plot) {
    return function (u) {
      var c = u.ctx, ratio = devicePixelRatio, box = u.bbox;
      c.save();
      c.beginPath();
      c.rect(box.left, box.top, box.width, box.height);
      c.clip();
      c.font = 12 * ratio + "px system-ui, sans-serif";
      c.textBaseline = "top";
      (plot.bands || []).forEach(function (b) {
        var from = u.valToPos(b.from, "x", true), to = u.valToPos(b.to, "x", true);
        c.fillStyle = colour("band");
        c.fillRect(from, box.top, to - from, box.height);
      });
      (plot.marks || []).forEach(function (m) {
        var x = u.valToPos(m.x, "x", true);
        c.strokeStyle = colour("dim");
        c.lineWidth = ratio;
        c.setLineDash([3 * ratio, 3 * ratio]);
        c.beginPath();
        c.moveTo(x, box.top);
        c.lineTo(x, box.top + box.height);
        c.stroke();
        c.setLineDash([]);
      });
      var taken = [];
      (plot.bands || []).forEach(function (b) {
        label(c, box, taken, b.label, "center", (u.valToPos(b.from, "x", true) + u.valToPos(b.to, "x", true)) / 2);
      });
      (plot.marks || []).forEach(function (m) {
        var x = u.valToPos(m.x, "x", true), right = x > box.left + box.width * 0.7;
        label(c, box, taken, m.label, right ? "right" : "left", x + (right ? -4 : 4) * ratio);
      });
      c.restore();
    };
  }

  // scale spans all of its values, with some room, in logarithmic steps where asked.
  function scale(axis, values, tight) {
    var min = Infinity, max = -Infinity;
    values.forEach(function (list) {
      list.forEach(function (v) { if (v != null) { min = Math.min(min, v); max = Math.max(max, v); } });
    });
    if (min > max) { min = 0; max = 1; }
    if (axis.log) return { distr: 3, range: [min / (tight ? 1 : 1.2), max * (tight ? 1 : 1.2)] };
    if (!tight) { max *= 1.08; min = Math.min(0, min); }
    if (min === max) { min -= 1; max += 1; }
    if (axis.pad) { var room = (max - min) * 0.05; min -= room; max += room; }
    return { time: false, range: [min, max] };
  }

  function axisOf(a, name, side, narrow) {
    var axis = {
      scale: name, side: side, label: a.label + (a.unit ? " (" + a.unit + ")" : ""),
      stroke: function () { return colour("dim"); },
      grid: { stroke: function () { return colour("grid"); }, show: side !== 1 },
      ticks: { stroke: function () { return colour("rule"); } },
      font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      size: side === 2 ? 40 : narrow ? 56 : 62, labelSize: 18,
      values: function (u, list) { return list.map(function (v) { return v == null ? "" : show(v); }); }
    };
    if (a.log) {
      axis.splits = function (u, i, min, max) { return logSplits(min, max); };
      axis.filter = function (u, list) { return list; };
    }
    return axis;
  }

  function draw(plot, place) {
    var data = aligned(plot), scatter = !plot.x, narrow = place.clientWidth < 480;
    var named = [(plot.marks || []).map(function (m) { return m.x; })].concat((plot.bands || []).map(function (b) { return [b.from, b.to]; }));
    var scales = { x: scale(plot.xAxis, [data[0]].concat(named), true) };
    ["y", "y2"].forEach(function (name) {
      var axis = plot[name + "Axis"];
      if (axis) scales[name] = scale(axis, data.slice(1).filter(function (_, i) { return (plot.series[i].scale || "y") === name; }), false);
    });
    var series = [{ label: plot.xAxis.label, value: function (u, v) { return show(v, plot.xAxis.unit); } }];
    plot.series.forEach(function (s, i) {
      var name = s.scale || "y";
      function stroke() { return colour("s" + i % 8); }
      series.push({
        label: (scatter ? glyphs[i % glyphs.length] + " " : "") + s.label, scale: name, stroke: stroke, fill: null,
        width: scatter ? 0 : 2, dash: scatter ? [] : dashes[i % dashes.length], spanGaps: false,
        paths: scatter ? function () { return null; } : undefined,
        points: scatter ? { show: true, size: 6, width: 1.5, stroke: stroke, fill: stroke, paths: shape } : { show: !!plot.points, size: 7 },
        value: function (u, v) { return show(v, plot[name + "Axis"].unit); }
      });
    });
    var axes = [axisOf(plot.xAxis, "x", 2, narrow), axisOf(plot.yAxis, "y", 3, narrow)];
    if (plot.y2Axis) axes.push(axisOf(plot.y2Axis, "y2", 1, narrow));
    var u = new uPlot({
      width: Math.max(place.clientWidth, 240), height: narrow ? 240 : 320,
      scales: scales, series: series, axes: axes,
      legend: { markers: { dash: function (u, i) { return scatter || !u.series[i].dash || !u.series[i].dash.length ? "solid" : i % 3 === 0 ? "dotted" : "dashed"; } } },
      cursor: { drag: { x: false, y: false }, dataIdx: function (u, i, j) { return i === 0 ? j : nearest(u, i, j); } },
      hooks: { draw: [marks(plot)] }
    }, data, place);
    keys(u, place);
    drawn.push({ plot: u, place: place });
  }

  // keys lets arrows walk along the plot, and Enter switch series of the legend.
  function keys(u, place) {
    var at = -1, figure = place.closest("figure");
    figure.addEventListener("keydown", function (e) {
      var n = u.data[0].length, step = { ArrowRight: 1, ArrowLeft: -1, PageDown: Math.ceil(n / 10), PageUp: -Math.ceil(n / 10) }[e.key];
      if (e.target !== figure || !n) return;
      if (e.key === "Escape") { at = -1; u.setCursor({ left: -10, top: -10 }); return; }
      if (e.key === "Home") step = -n;
      if (e.key === "End") step = n;
      if (!step) return;
      e.preventDefault();
      at = Math.min(n - 1, Math.max(0, at + step));
      u.setCursor({ left: u.valToPos(u.data[0][at], "x"), top: u.over.clientHeight / 2 });
    });
    u.root.querySelectorAll(".u-legend .u-series th").forEach(function (th, i) {
      if (i === 0) return; // x itself
      th.tabIndex = 0;
      th.setAttribute("role", "button");
      th.setAttribute("aria-pressed", "true");
      th.addEventListener("click", function () {
        setTimeout(function () { th.setAttribute("aria-pressed", String(u.series[i].show)); }, 0);
      });
      th.addEventListener("keydown", function (e) {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        th.click();
      });
    });
  }

  try {
    JSON.parse(document.getElementById("weir-data").textContent).plots.forEach(function (plot) {
      var place = document.getElementById("draw-" + plot.id);
      try {
        draw(plot, place);
        state.plots++;
      } catch (err) {
        state.errors.push(plot.id + ": " + err);
        place.textContent = "This plot could not be drawn; the tables hold the same figures.";
      }
    });
  } catch (err) {
    state.errors.push(String(err));
  }
  if (window.ResizeObserver) {
    var observer = new ResizeObserver(function () {
      drawn.forEach(function (d) {
        var width = Math.max(d.place.clientWidth, 240);
        if (width !== d.plot.width) d.plot.setSize({ width: width, height: width < 480 ? 240 : 320 });
      });
    });
    drawn.forEach(function (d) { observer.observe(d.place); });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    drawn.forEach(function (d) { d.plot.redraw(false, true); });
  });
  setTimeout(function () { state.ready = true; }, 0);
})();
