/** The examples of monitoring name only metrics that a real orchestrator has, and the real Prometheus scrapes it with them. */
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { EVENT_SEVERITY } from '../../daemon/core/domain-event.js';
import { freePort } from '../support/free-port.js';
import { itNeeding } from '../support/needing.js';
import { type Ready, Sandbox, until } from '../support/orch.js';

const directory = fileURLToPath(new URL('../../examples/monitoring/', import.meta.url));
const example = (name: string) => readFileSync(`${directory}${name}`, 'utf8');
const TOKEN = 'a-token-of-at-least-32-characters-for-tests';

const sandbox = new Sandbox();
let ready: Ready;
let metrics: string;

const get = (path: string, token: string): Promise<{ readonly status: number; readonly text: string }> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(`${ready.api_url}${path}`, { headers, rejectUnauthorized: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject).end();
  });

beforeAll(async () => {
  await sandbox.json(['operator', 'init']);
  ({ ready } = await sandbox.serve(['--metrics-token', TOKEN]));
  // Gauges appear with their values, histograms after the first request.
  await get('/api/v1/status', TOKEN);
  ({ text: metrics } = await get('/api/v1/metrics', TOKEN));
});

afterAll(() => sandbox.dispose());

interface Rules {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}
interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

const alerts = (parse(example('orch.rules.yml')) as Rules).groups.flatMap(({ rules }) => rules);
const panels = (JSON.parse(example('grafana-dashboard.json')) as Dashboard).panels;
const expressions = [
  ...alerts.map(({ alert, expr }) => ({ name: alert, expr })),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ name: `panel ${title}`, expr }))),
];

/** Metrics that Prometheus itself makes for each target. */
const OF_PROMETHEUS = ['up'];

describe('the expressions', () => {
  it.each(expressions)('of $name name only metrics that the orchestrator has', ({ expr }) => {
    const families = [...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    );
    const used = expr.match(/\b(?:(?:orch|process|nodejs)_\w+|up)\b(?=[{[ ]|$|\))/g) ?? [];
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((name) => !families.includes(name) && !OF_PROMETHEUS.includes(name))).toEqual([]);
  });

  it.each(expressions)('of $name name only labels that exist', ({ expr }) => {
    for (const [, label = '', value = ''] of expr.matchAll(/\b(status|standing|queue)="([^"]+)"/g)) {
      expect(metrics).toContain(`${label}="${value}"`);
    }
    for (const [, type = ''] of expr.matchAll(/\btype="([^"]+)"/g)) expect(Object.keys(EVENT_SEVERITY)).toContain(type);
    for (const [, pattern] of expr.matchAll(/\btype=~"([^"]+)"/g)) {
      expect(Object.keys(EVENT_SEVERITY).some((type) => new RegExp(`^${pattern}$`).test(type))).toBe(true);
    }
  });
});

describe('the guide', () => {
  it('explains each alert and names the token', () => {
    const guide = readFileSync(new URL('../../docs/guides/monitoring.md', import.meta.url), 'utf8');
    expect(alerts.filter(({ alert }) => !guide.includes(`\`${alert}\``))).toEqual([]);
    expect(guide).toContain('metrics_token');
  });

  it('says the truth: without the right token there are no metrics', async () => {
    expect((await get('/api/v1/metrics', 'wrong')).status).toBe(401);
    expect((await get('/api/v1/agents', TOKEN)).status).toBe(401);
  });
});

describe('Prometheus', () => {
  itNeeding('promtool')('accepts the alert rules', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', `${directory}orch.rules.yml`], {
      encoding: 'utf8',
    });
    expect({ status, output: stdout + stderr }).toMatchObject({ status: 0 });
  });

  itNeeding('prometheus', 'promtool')('scrapes a real orchestrator with the example', async () => {
    const place = sandbox.path('prometheus');
    mkdirSync(place);
    copyFileSync(`${directory}orch.rules.yml`, `${place}/orch.rules.yml`);
    copyFileSync(sandbox.path('serve/api.crt'), `${place}/orch-api.crt`);
    writeFileSync(`${place}/orch-metrics.token`, TOKEN);
    const config = example('prometheus.yml').replace('orch.example.org:4748', new URL(ready.api_url).host);
    writeFileSync(
      `${place}/prometheus.yml`,
      config.replace('job_name: orch', 'job_name: orch\n    scrape_interval: 1s'),
    );
    const checked = spawnSync('promtool', ['check', 'config', `${place}/prometheus.yml`], { encoding: 'utf8' });
    expect({ status: checked.status, output: checked.stdout + checked.stderr }).toMatchObject({ status: 0 });

    const port = await freePort();
    const words = [`--config.file=${place}/prometheus.yml`, `--storage.tsdb.path=${place}/data`];
    const child = spawn('prometheus', [...words, `--web.listen-address=127.0.0.1:${port}`], { cwd: place });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const ended = new Promise((resolve) => child.on('close', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    let answer = '';
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`prometheus ended early:\n${output}`);
      const query = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent('up{job="orch"}')}`;
      answer = await fetch(query).then((reply) => reply.text(), String);
      return answer.includes('"1"');
    }, `prometheus has scraped it`);
    const query = `http://127.0.0.1:${port}/api/v1/query?query=orch_info`;
    expect(await fetch(query).then((reply) => reply.text())).toContain('"version"');
  });
});
