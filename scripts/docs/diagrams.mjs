/**
 * Writes the diagrams of the documentation: `node scripts/docs/diagrams.mjs [DIRECTORY]`, by default into `docs/diagrams/`. They are
 * SVG files that follow the light or dark colours of the page around them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const LINE_HEIGHT = 19;

/** A box with centred lines; the first one is strong. `kind` is `machine`, `part` or `key`. */
function box({ x, y, w, h, kind = 'part', lines }) {
  const top = y + h / 2 - ((lines.length - 1) * LINE_HEIGHT) / 2 + 5;
  const rows = lines.map(
    (line, index) =>
      `<text x="${x + w / 2}" y="${top + index * LINE_HEIGHT}" class="${index === 0 ? 'strong' : 'small'}">${escaped(line)}</text>`,
  );
  return `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="8" class="${kind}"/>${rows.join('')}`;
}

/** A frame with a title at its top, around `titleX`. */
const frame = ({ x, y, w, h, title, titleX = x + w / 2 }) =>
  `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="10" class="frame"/><text x="${titleX}" y="${y + 22}" class="strong">${escaped(title)}</text>`;

/** An arrow from one point to another. `label` stands at its middle, moved by `dx` and `dy`. */
function arrow({ from, to, label = [], dx = 0, dy = -7, anchor = 'middle', isDashed = false, isBoth = false }) {
  const line = `<line x1="${from[0]}" y1="${from[1]}" x2="${to[0]}" y2="${to[1]}" class="arrow${isDashed ? ' dashed' : ''}" marker-end="url(#head)"${isBoth ? ' marker-start="url(#head)"' : ''}/>`;
  const x = (from[0] + to[0]) / 2 + dx;
  const y = (from[1] + to[1]) / 2 + dy;
  const rows = label.map(
    (text, index) =>
      `<text x="${x}" y="${y + (index - label.length + 1) * 16}" class="label" text-anchor="${anchor}">${escaped(text)}</text>`,
  );
  return line + rows.join('');
}

/** Text at a point. */
const note = ({ x, y, lines, anchor = 'start' }) =>
  lines
    .map(
      (line, index) =>
        `<text x="${x}" y="${y + index * 17}" class="label" text-anchor="${anchor}">${escaped(line)}</text>`,
    )
    .join('');

/** A sequence: lifelines from left to right, and steps from top to bottom. */
function sequence({ width, lanes, steps }) {
  const gap = width / lanes.length;
  const at = (lane) => gap * lanes.indexOf(lane) + gap / 2;
  const top = 12;
  let y = top + 78;
  const drawn = steps.map(({ from, to, text, isAnswer = false }) => {
    const [first, second] = [at(from), at(to ?? from)];
    const isOwn = to === undefined;
    const height = text.length * 16;
    const start = y;
    y += height + (isOwn ? 26 : 18);
    if (isOwn) {
      const w = gap - 14;
      return `<rect x="${first - w / 2}" y="${start - 8}" width="${w}" height="${height + 12}" rx="6" class="step"/>${note({ x: first, y: start + 8, lines: text, anchor: 'middle' })}`;
    }
    return arrow({
      from: [first, start + height - 2],
      to: [second, start + height - 2],
      label: text,
      isDashed: isAnswer,
    });
  });
  const height = y + 4;
  const heads = lanes.map(
    (lane) =>
      `<line x1="${at(lane)}" y1="${top + 40}" x2="${at(lane)}" y2="${height - 6}" class="lane"/>${box({ x: at(lane) - gap / 2 + 8, y: top, w: gap - 16, h: 40, kind: 'machine', lines: [lane] })}`,
  );
  return { width, height, parts: [...heads, ...drawn] };
}

const DIAGRAMS = {
  parties: {
    title:
      'Who talks to whom: operators and programs dial the API of the orchestrator, and agents dial its agent port. The orchestrator dials only notification channels.',
    width: 560,
    height: 560,
    parts: [
      box({ x: 20, y: 16, w: 160, h: 64, kind: 'machine', lines: ['Operators', 'the command orch'] }),
      box({ x: 200, y: 16, w: 160, h: 64, kind: 'machine', lines: ['Programs', 'CI, Prometheus'] }),
      box({ x: 380, y: 16, w: 160, h: 64, kind: 'machine', lines: ['Channels', 'chat, webhooks'] }),
      frame({ x: 20, y: 140, w: 520, h: 266, title: 'Orchestrator: orch serve', titleX: 205 }),
      box({ x: 40, y: 178, w: 310, h: 60, lines: ['API', 'port 4748'] }),
      box({ x: 390, y: 178, w: 130, h: 60, lines: ['Notifications', 'if configured'] }),
      box({
        x: 40,
        y: 254,
        w: 480,
        h: 60,
        kind: 'key',
        lines: ['Store and keys', 'modules, assignments, operations, audit log'],
      }),
      box({ x: 40, y: 330, w: 480, h: 60, lines: ['Agent link', 'port 4747'] }),
      arrow({ from: [100, 80], to: [100, 176], label: ['HTTPS'], dx: 8, dy: -14, anchor: 'start' }),
      arrow({ from: [310, 80], to: [310, 176], label: ['HTTPS'], dx: -8, dy: -14, anchor: 'end' }),
      arrow({ from: [460, 178], to: [460, 82], label: ['HTTPS'], dx: 8, dy: -14, anchor: 'start' }),
      box({ x: 20, y: 480, w: 160, h: 64, kind: 'machine', lines: ['web-01', 'orch agent'] }),
      box({ x: 200, y: 480, w: 160, h: 64, kind: 'machine', lines: ['web-02', 'orch agent'] }),
      box({ x: 380, y: 480, w: 160, h: 64, kind: 'machine', lines: ['db-01', 'orch agent'] }),
      arrow({
        from: [100, 480],
        to: [100, 392],
        label: ['TLS 1.3:', 'both ends', 'prove a key'],
        dx: 8,
        dy: 24,
        anchor: 'start',
      }),
      arrow({ from: [280, 480], to: [280, 392] }),
      arrow({ from: [460, 480], to: [460, 392] }),
    ],
  },
  apply: {
    title:
      'The life of an apply: the orchestrator stores the operation before it sends it, and the agent journals it before it changes anything. Results are acknowledged after they are stored.',
    ...sequence({
      width: 600,
      lanes: ['Operator', 'Orchestrator', 'Agent', 'Machine'],
      steps: [
        { from: 'Operator', to: 'Orchestrator', text: ['apply'] },
        { from: 'Orchestrator', text: ['resolve modules,', 'store operation', 'and audit event'] },
        { from: 'Orchestrator', to: 'Operator', text: ['accepted'], isAnswer: true },
        { from: 'Orchestrator', to: 'Agent', text: ['run'] },
        { from: 'Agent', text: ['write the run', 'to the journal'] },
        { from: 'Agent', to: 'Orchestrator', text: ['run_accepted'], isAnswer: true },
        { from: 'Agent', to: 'Machine', text: ['read'] },
        { from: 'Agent', text: ['plan, journal', 'the intent'] },
        { from: 'Agent', to: 'Machine', text: ['change'] },
        { from: 'Agent', to: 'Machine', text: ['read again'] },
        { from: 'Agent', text: ['journal results,', 'health checks'] },
        { from: 'Agent', to: 'Orchestrator', text: ['results, run_finished'], isAnswer: true },
        { from: 'Orchestrator', text: ['store the end,', 'believed state'] },
        { from: 'Orchestrator', to: 'Agent', text: ['run_ack'] },
        { from: 'Orchestrator', to: 'Operator', text: ['result'], isAnswer: true },
      ],
    }),
  },
  comparisons: {
    title:
      'Three things are compared: what modules declare, what the last applies left, and what is on the machine now. A plan compares the first with the last, drift the second with the last, and the standing says whether the first two differ.',
    width: 560,
    height: 330,
    parts: [
      box({ x: 16, y: 20, w: 190, h: 72, kind: 'machine', lines: ['Declared', 'modules and assignments'] }),
      box({ x: 354, y: 20, w: 190, h: 72, kind: 'machine', lines: ['Believed', 'left by the last applies'] }),
      box({ x: 185, y: 240, w: 190, h: 72, kind: 'machine', lines: ['Machine', 'what is there now'] }),
      arrow({ from: [208, 56], to: [352, 56], label: ['standing:', 'behind?'], dy: -8, isBoth: true, isDashed: true }),
      arrow({
        from: [130, 94],
        to: [230, 238],
        label: ['plan and apply'],
        dx: -12,
        dy: 12,
        anchor: 'end',
        isBoth: true,
      }),
      arrow({ from: [430, 94], to: [330, 238], label: ['drift'], dx: 12, dy: 12, anchor: 'start', isBoth: true }),
    ],
  },
  trust: {
    title:
      'The chain of trust: the operator has compared the certificate of the API, the orchestrator knows the public keys of operators and of approved agents, and each agent has pinned the public key of the orchestrator.',
    width: 560,
    height: 440,
    parts: [
      frame({ x: 16, y: 12, w: 528, h: 100, title: 'Operator' }),
      box({ x: 36, y: 46, w: 220, h: 52, kind: 'key', lines: ["operator's key", 'signs the login'] }),
      box({ x: 304, y: 46, w: 220, h: 52, lines: ['profile', 'pins the certificate'] }),
      frame({ x: 16, y: 172, w: 528, h: 100, title: 'Orchestrator' }),
      box({ x: 36, y: 206, w: 220, h: 52, lines: ['operators, agents', 'by public key'] }),
      box({ x: 304, y: 206, w: 220, h: 52, kind: 'key', lines: ["orchestrator's keys", 'link, API, secrets, audit'] }),
      frame({ x: 16, y: 332, w: 528, h: 100, title: 'Agent' }),
      box({ x: 36, y: 366, w: 220, h: 52, kind: 'key', lines: ["agent's key", 'its hash is the node ID'] }),
      box({ x: 304, y: 366, w: 220, h: 52, lines: ['pinned key', 'the only one it obeys'] }),
      arrow({ from: [146, 98], to: [146, 204], label: ['added by an admin'], dx: 8, dy: -2, anchor: 'start' }),
      arrow({ from: [414, 206], to: [414, 100], label: ['compared once'], dx: 8, dy: -2, anchor: 'start' }),
      arrow({
        from: [146, 366],
        to: [146, 260],
        label: ['approved by an operator,', 'or by a token'],
        dx: 8,
        dy: 4,
        anchor: 'start',
      }),
      arrow({
        from: [414, 258],
        to: [414, 364],
        label: ['by token, option', 'or a person'],
        dx: 8,
        dy: 4,
        anchor: 'start',
      }),
    ],
  },
};

const STYLE = `
text { font: 14px system-ui, "DejaVu Sans", sans-serif; fill: #1f2328; }
.strong, .small { text-anchor: middle; } .strong { font-weight: 600; } .small, .label { font-size: 13px; fill: #424a53; }
rect { stroke: #8c959f; fill: #f6f8fa; } .machine { fill: #ddf4ff; stroke: #54aeff; } .key { fill: #fff8c5; stroke: #bf8700; }
.frame { fill: none; stroke-dasharray: 5 4; } .step { fill: #ffffff; }
.arrow { stroke: #424a53; stroke-width: 1.5; } .dashed { stroke-dasharray: 5 4; } .lane { stroke: #8c959f; stroke-dasharray: 2 4; } #head path { fill: #424a53; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small, .label { fill: #b1bac4; }
  rect { stroke: #656c76; fill: #161b22; } .machine { fill: #10243e; stroke: #1f6feb; } .key { fill: #2e2500; stroke: #9e6a03; }
  .frame { fill: none; } .step { fill: #0d1117; }
  .arrow { stroke: #b1bac4; } .lane { stroke: #656c76; } #head path { fill: #b1bac4; }
}`;

const svgOf = ({
  title,
  width,
  height,
  parts,
}) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">${escaped(title)}</title>
<style>${STYLE}
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z"/></marker></defs>
${parts.join('\n')}
</svg>
`;

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

const out = resolve(process.argv[2] ?? fileURLToPath(new URL('../../docs/diagrams', import.meta.url)));
mkdirSync(out, { recursive: true });
for (const [name, diagram] of Object.entries(DIAGRAMS)) writeFileSync(`${out}/${name}.svg`, svgOf(diagram));
