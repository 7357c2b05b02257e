const svg = 'http://www.w3.org/2000/svg';
const [left, right, top, bottom] = [44, 596, 12, 248];
const kept = 5 * 60 * 1000;

// graph draws the values of the last five minutes as a curve in an SVG element, and describes them in caption.
export function graph(element, caption) {
  let points = [];
  for (const percent of [0, 50, 100]) {
    add('line', 'grid', { x1: left, x2: right, y1: y(percent), y2: y(percent) });
    add('text', 'label', { x: left - 6, y: y(percent) + 4, 'text-anchor': 'end' }).textContent = `${percent} %`;
  }
  const curve = add('polyline', 'curve', {});

  function add(name, kind, attributes) {
    const shape = document.createElementNS(svg, name);
    shape.setAttribute('class', kind);
    for (const [attribute, value] of Object.entries(attributes)) shape.setAttribute(attribute, value);
    element.append(shape);
    return shape;
  }

  // at is in milliseconds. Without a value, there are no servers, and the curve begins anew.
  return function append(at, value) {
    if (value === undefined) points = [];
    else points = [...points.filter((point) => point.at > at - kept), { at, value }];
    curve.setAttribute('points', points.map((point) => `${x(point.at).toFixed(1)},${y(point.value).toFixed(1)}`).join(' '));
    caption.textContent = described();
  };

  function x(at) {
    const [first, last] = [points[0].at, points.at(-1).at];
    return first === last ? left : left + ((right - left) * (at - first)) / (last - first);
  }

  function described() {
    if (points.length === 0) return 'There are no servers';
    const values = points.map((point) => point.value);
    const [lowest, highest] = [Math.round(Math.min(...values)), Math.round(Math.max(...values))];
    const seconds = Math.round((points.at(-1).at - points[0].at) / 1000);
    const range = lowest === highest ? `${lowest}` : `${lowest}–${highest}`;
    return `Mean of all servers: ${Math.round(values.at(-1))} %. In the last ${seconds} s: ${range} %.`;
  }
}

// y limits the percentage: a test can set the use of a server to any value.
function y(percent) {
  return bottom - ((bottom - top) * Math.max(0, Math.min(100, percent))) / 100;
}
