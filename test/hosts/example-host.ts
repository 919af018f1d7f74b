/** Modules of the repository on a booted Debian that has their programs: planned, applied and removed, each apart from the others. */
import { readdirSync, readFileSync } from 'node:fs';
import type { RunResult } from '../../src/contract/runs.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { BootedHost } from './host.js';

/** Packages of Debian's archive that the examples and the everyday answers are about, and `curl`: one image for all suites of them. */
export const EXAMPLE_PACKAGES: readonly string[] = [
  ...['openssh-server', 'sudo', 'nginx-light', 'logrotate', 'unattended-upgrades', 'prometheus-node-exporter'],
  ...['jq', 'systemd-timesyncd', 'tzdata', 'curl', 'postgresql', 'openssl', 'locales', 'vim', 'cron', 'nftables'],
];

const examples = new URL('../../examples/', import.meta.url);
const beside = new URL('files/', examples);

export const exampleText = (name: string): string => readFileSync(new URL(name, examples), 'utf8');

/** Puts the files beside the examples where `runExample` writes modules. */
export async function bringFilesBeside(host: BootedHost): Promise<void> {
  for (const name of readdirSync(beside))
    await host.writeFile(`/root/files/${name}`, readFileSync(new URL(name, beside)));
}

/** Plans or applies one module with a state of its own. */
export async function runExample(
  host: BootedHost,
  verb: 'plan' | 'apply',
  { name, text, flags }: { readonly name: string; readonly text: string; readonly flags: readonly string[] },
): Promise<readonly ResourceResult[]> {
  const file = `/root/${name}.orch.yaml`;
  await host.writeFile(file, text);
  const where = ['--local', '-f', file, '--data-dir', `/var/lib/orch-examples/${name}`];
  const consent = verb === 'apply' ? ['--yes', '--allow-removals', '1000'] : [];
  const { stdout, stderr } = await host.run(['orch', verb, ...where, ...flags, ...consent, '-o', 'json'], {
    timeoutMs: 300_000,
  });
  if (!stdout.startsWith('{')) throw new Error(`orch ${verb} says:\n${stderr}${stdout}`);
  return (JSON.parse(stdout) as RunResult).resources;
}

/** Applies nothing in the place of a module. */
export const removeExample = (host: BootedHost, name: string): Promise<readonly ResourceResult[]> =>
  runExample(host, 'apply', { name, text: 'name: nothing\nsupports: [{}]\nresources: []\n', flags: [] });

export const failed = (results: readonly ResourceResult[]): readonly string[] =>
  results.flatMap(({ identity, status, error }) =>
    status === 'failed' || status === 'skipped' ? [`${identity} ${status}: ${error?.message}`] : [],
  );

export const changed = (results: readonly ResourceResult[]): readonly string[] =>
  results.filter(({ status }) => status !== 'unchanged').map(({ identity, action }) => `${identity} ${action}`);
