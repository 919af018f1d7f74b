/** Resolution beyond the cases: what is shared, what is bounded, what is refused. */
import { describe, expect, it } from 'vitest';
import { type Fault, isFault } from '../../src/kernel/fault.js';
import { type CompiledModule, compileModule } from '../../src/language/compile-module.js';
import { moduleFault } from '../../src/language/diagnostic.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import type { SecretSource } from '../../src/language/filling.js';
import { kindSet } from '../../src/language/kind-set.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { moduleParser, parseModule } from '../../src/language/parse-module.js';
import { resolveCompiled } from '../../src/language/resolve.js';
import { SAMPLE_KINDS } from '../support/language.js';

const agent = (name: string): AgentFacts => ({
  node_id: '0'.repeat(32),
  name,
  attributes: { platform: 'linux' },
  tags: {},
});

const noSecret: SecretSource = () => null;

function compiled(resources: string): CompiledModule {
  const source = `name: web\nsupports: [{}]\nresources:\n${resources}`;
  const { definition, diagnostics } = parseModule(source);
  if (definition === null) throw moduleFault('the test', diagnostics);
  return compileModule({ name: 'web', definition });
}

function faultOf(run: () => unknown): Fault {
  try {
    run();
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('resolveCompiled', () => {
  it('shares the parts that are the same for every agent, and no one can change them', () => {
    const module = compiled('- resource: {file-unix: {path: /a, content: text}}\n');
    const [first, second] = ['a', 'b'].map((name) => {
      const { resources } = resolveCompiled({ modules: [module], agent: agent(name), secret: noSecret });
      return resources[0]?.body;
    });
    expect(first).toBe(second);
    expect(Object.isFrozen(first)).toBe(true);
  });

  it('does not mix up agents', () => {
    const module = compiled(`- resource: {file-unix: {path: /a, content: "${OPEN} agent.name }}"}}\n`);
    const contents = ['a', 'b', 'a'].map((name) => {
      const { resources } = resolveCompiled({ modules: [module], agent: agent(name), secret: noSecret });
      return resources[0]?.body.content;
    });
    expect(contents).toEqual(['a', 'b', 'a']);
  });

  it('asks for each secret once', () => {
    const asked: string[] = [];
    const module = compiled(`- resource: {file-unix: {path: /a, content: "${`${OPEN} secrets.s }}`.repeat(5)}"}}\n`);
    const secret = (name: string) => {
      asked.push(name);
      return { value: 'v', tag: '0000' };
    };
    const { resources } = resolveCompiled({ modules: [module], agent: agent('a'), secret });
    expect(resources[0]?.body.content).toBe('vvvvv');
    expect(asked).toEqual(['s']);
  });

  it('refuses a text that its expressions make larger than a file may be', () => {
    const module = compiled(`- resource: {file-unix: {path: /a, content: "${`${OPEN} secrets.s }}`.repeat(1000)}"}}\n`);
    const secret = () => ({ value: 'x'.repeat(64 * 1024), tag: '0000' });
    expect(faultOf(() => resolveCompiled({ modules: [module], agent: agent('a'), secret }))).toMatchObject({
      code: 'expression_error',
      message: 'module "web", /resources/0: content: the text is too long with its expressions filled in',
    });
  });

  it('refuses texts that are too long together', () => {
    const one = `${OPEN} secrets.s }}`.repeat(15);
    const module = compiled(
      Array.from(
        { length: 100 },
        (_, index) => `- resource: {file-unix: {path: /a${index}, content: "${one}"}}\n`,
      ).join(''),
    );
    const secret = () => ({ value: 'x'.repeat(64 * 1024), tag: '0000' });
    const fault = faultOf(() => resolveCompiled({ modules: [module], agent: agent('a'), secret }));
    expect(fault).toMatchObject({ code: 'expression_error' });
    expect(fault.errors?.[0]?.path).toBe('/resources/68/resource/file-unix/content');
  });

  it('refuses a secret in what a resource has as its identity', () => {
    const [name, known] = [...SAMPLE_KINDS].find(([kind]) => kind === 'sample-text') ?? [];
    if (name === undefined || known === undefined) throw new Error('the sample kind is gone');
    const kind = { ...known.kind, identity: (body: object) => JSON.stringify(body) };
    const kinds = kindSet(new Map([[name, kind]]));
    const source = `name: web\nsupports: [{}]\nresources:\n- {id: r, resource: {sample-text: {name: a, template: t}}}\ntemplates: [{id: t, content: "${OPEN} secrets.s }}"}]\n`;
    const { definition } = moduleParser(kinds)(source);
    if (definition === null) throw new Error('the module is refused already');
    const module = compileModule({ name: 'web', definition }, kinds);
    const fault = faultOf(() =>
      resolveCompiled({ modules: [module], agent: agent('a'), secret: () => ({ value: 'hidden', tag: '0000' }) }),
    );
    expect(fault).toMatchObject({
      code: 'expression_error',
      message: 'module "web", resource "r": a secret must not be part of the identity of a resource',
    });
    expect(JSON.stringify({ ...fault, message: fault.message })).not.toContain('hidden');
  });
});

describe('compileModule', () => {
  it('refuses a kind and an id that it does not know, as an older program may meet them', () => {
    const unknownKind = { name: 'web', resources: [{ resource: { 'file-cloud': { path: '/a' } } }] };
    expect(faultOf(() => compileModule({ name: 'web', definition: unknownKind }))).toMatchObject({
      code: 'invalid_module',
      message: 'module "web": /resources/0/resource has the unknown kind "file-cloud"',
    });
    const unknownId = { name: 'web', resources: [{ depends_on: ['x'], resource: { 'file-unix': { path: '/a' } } }] };
    expect(faultOf(() => compileModule({ name: 'web', definition: unknownId }))).toMatchObject({
      code: 'invalid_module',
      message: 'module "web": /resources/0/depends_on names "x", which no resource has as its id',
    });
  });
});

describe('moduleFault', () => {
  it('has every error with its place, and no warning', () => {
    const { diagnostics } = parseModule('nmae: web\nresources: 5\n');
    expect(moduleFault('web.orch.yaml', diagnostics)).toMatchObject({
      code: 'invalid_module',
      message: 'web.orch.yaml: line 1: unknown key "nmae"; did you mean "name"? (and 2 more)',
      errors: [
        { path: '/nmae', message: 'unknown key "nmae"; did you mean "name"?', line: 1, column: 1 },
        { path: '/name', message: '"name" is required in a module', line: 1, column: 1 },
        { path: '/resources', message: '"resources" must be a list, but this is 5', line: 2, column: 12 },
      ],
    });
  });
});
