/** The examples are modules without a mistake or a warning, and their list is complete. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AgentSettingsFile } from '../src/agent/settings-file.js';
import { filesBeside } from '../src/cli/modules/files-beside.js';
import { silentLogger } from '../src/kernel/logger.js';
import { finish } from '../src/kernel/steps.js';
import { compileModule } from '../src/language/compile-module.js';
import { renderDiagnostic } from '../src/language/diagnostic.js';
import type { AgentFacts } from '../src/language/evaluate.js';
import { checkSet } from '../src/language/inputs/check-set.js';
import { parseValueSet } from '../src/language/inputs/value-set.js';
import { parseModule } from '../src/language/parse-module.js';
import { resolve } from '../src/language/resolve.js';
import { CATALOGUE } from '../src/resources/catalogue.js';

const examples = new URL('../examples/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, examples), 'utf8');
const modulesIn = (folder: string) =>
  readdirSync(new URL(folder, examples)).filter((name) => name.endsWith('.orch.yaml'));
const files = [...modulesIn('.'), ...modulesIn('site/modules').map((name) => `site/modules/${name}`)];

/** One agent of each system that an example is for. */
const AGENTS: readonly Readonly<Record<string, string>>[] = [
  { platform: 'linux', distro: 'debian', init_system: 'systemd' },
  { platform: 'linux', distro: 'ubuntu', init_system: 'systemd' },
  { platform: 'linux', distro: 'fedora', init_system: 'systemd' },
  { platform: 'linux', distro: 'rocky', init_system: 'systemd' },
  { platform: 'linux', distro: 'alma', init_system: 'systemd' },
  { platform: 'linux', distro: 'rhel', init_system: 'systemd' },
  { platform: 'macos', init_system: 'launchd' },
  { platform: 'windows', init_system: 'scm' },
];

const agentOf = (attributes: AgentFacts['attributes'], tags: AgentFacts['tags'] = {}): AgentFacts => ({
  node_id: '0'.repeat(32),
  name: 'web-01',
  attributes: { ...attributes, arch: 'x86_64' },
  tags: { site: 'www.example.net', ...tags },
});

const parsed = (file: string) => parseModule(read(file), filesBeside(fileURLToPath(new URL(file, examples))));

const definitionOf = (file: string) => {
  const { definition, diagnostics } = parsed(file);
  if (definition === null) throw new Error(`${file}: ${JSON.stringify(diagnostics)}`);
  return definition;
};

describe("the agent's configuration file", () => {
  it('is valid, and allows terminals as a user other than root', async () => {
    const path = fileURLToPath(new URL('config/agent.yaml', examples));
    const { settings } = await AgentSettingsFile.open({ path, isOptional: false, logger: silentLogger });
    expect(settings).toMatchObject({ 'remote_terminal.enabled': true, 'remote_terminal.user': 'operations' });
  });
});

describe('every example', () => {
  it.each(files)('%s is valid, without a warning', (file) => {
    const source = read(file);
    const { diagnostics } = parsed(file);
    expect(diagnostics.map((one) => renderDiagnostic(one, { file, source }))).toEqual([]);
  });

  it.each(files)('%s begins with what it is for, and has the name of its file', (file) => {
    const source = read(file);
    expect(source).toMatch(/^# \S/);
    expect(`${definitionOf(file).name}.orch.yaml`).toBe(file.split('/').at(-1));
  });

  it.each(files)('%s becomes resources on each system that it supports, and on no other', (file) => {
    const definition = definitionOf(file);
    const supported = AGENTS.filter((attributes) => {
      const request = { modules: [{ name: definition.name, definition }], agent: agentOf(attributes) };
      try {
        const { resources, warnings } = resolve({ ...request, secret: () => ({ value: 'a secret', tag: '0000' }) });
        expect(warnings).toEqual([]);
        const foreign = resources.filter(({ kind }) => !platformsOf(kind).includes(attributes.platform ?? ''));
        expect(foreign).toEqual([]);
        return true;
      } catch (error) {
        expect(error).toMatchObject({ code: 'module_not_supported' });
        return false;
      }
    });
    expect(supported.length).toBeGreaterThan(0);
  });

  it('takes its values from the value set beside it', () => {
    const { set, diagnostics } = parseValueSet(read('roles.values.yaml'));
    expect(diagnostics).toEqual([]);
    const modules = new Map(
      files.map((file) => [definitionOf(file).name, compileModule({ name: file, definition: definitionOf(file) })]),
    );
    expect(set === null ? null : finish(checkSet(set, modules))).toEqual([]);
  });

  it('is in the list, which has no other', () => {
    const listed = [...read('README.md').matchAll(/^\| \[[^\]]+\]\(([^)]+)\)/gm)].map(([, file]) => file);
    expect(listed.sort()).toEqual(modulesIn('.').sort());
  });
});

const platformsOf = (kind: string): readonly string[] => CATALOGUE.get(kind)?.platforms ?? [];

describe('the examples together', () => {
  it('use every family of kinds', () => {
    const used = new Set(
      files.flatMap((file) =>
        [...read(file).matchAll(/\b([a-z]+-[a-z]+|script):\s*(?:\{|$)/gm)].map(([, kind]) => kind),
      ),
    );
    const families = ['file', 'directory', 'package', 'service', 'user', 'group', 'script'];
    expect(families.filter((family) => ![...used].some((kind) => kind?.split('-')[0] === family))).toEqual([]);
  });

  it('go together on one Debian', () => {
    const modules = files
      .filter((file) => file !== 'site/modules/motd.orch.yaml')
      // Containers need their engine first.
      .sort((one, other) => Number(other.startsWith('container-engine')) - Number(one.startsWith('container-engine')))
      .map((file) => ({ name: definitionOf(file).name, definition: definitionOf(file) }));
    const agent = agentOf({ platform: 'linux', distro: 'debian', init_system: 'systemd' });
    const { resources, warnings } = resolve({ modules, agent, secret: () => ({ value: 'x', tag: '0000' }) });
    expect(warnings).toEqual([]);
    expect(resources.length).toBeGreaterThan(40);
  });
});
