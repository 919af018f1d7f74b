/** Files beside modules in the store: uploads in parts, what keeps them, and modules and applies that take them. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { FILE_PART_BYTES } from '../../src/contract/files.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench } from '../support/engine.js';

const WEEK = 7 * 24 * 3_600_000;
/** Two whole parts and a rest. */
const BYTES = Buffer.alloc(2 * FILE_PART_BYTES + 5, 'abc');

const digestOf = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');

/** Sends the part at an offset as it should be. */
const send = ({ moduleFiles }: Bench, bytes: Buffer, offset: number) =>
  moduleFiles.upload(digestOf(bytes), {
    size: bytes.length,
    offset,
    data: bytes.subarray(offset, offset + FILE_PART_BYTES).toString('base64'),
  });

/** Uploads a whole file and returns its SHA-256. */
async function upload(bench: Bench, content: Buffer | string): Promise<string> {
  const bytes = Buffer.from(content);
  for (let offset = 0; offset === 0 || offset < bytes.length; offset += FILE_PART_BYTES)
    await send(bench, bytes, offset);
  return digestOf(bytes);
}

async function readAll(bench: Bench, sha256: string, from = 0): Promise<Buffer | null> {
  const opened = await bench.moduleFiles.open(sha256);
  if (opened === null) return null;
  const pieces: Buffer[] = [];
  for await (const piece of opened.read(from)) pieces.push(piece);
  return Buffer.concat(pieces);
}

const MODULE = `name: site
supports: [{platform: linux}]
resources: [{file-unix: {path: /site, source: files/app.bin}}]
`;
const site = (sha256: string, text = MODULE) => ({ name: 'site', content: text, files: { 'files/app.bin': sha256 } });

/** Lets more than a week pass, and deletes what nothing names. */
async function prune(bench: Bench): Promise<void> {
  bench.clock.advance(WEEK + 1);
  await bench.moduleFiles.prune();
}

describe('an upload', () => {
  it('continues at any part, and takes none twice or out of order', async () => {
    const bench = await openBench();
    const sha256 = digestOf(BYTES);
    const ask = () => bench.moduleFiles.upload(sha256, { size: BYTES.length, offset: 0, data: '' });
    expect(await ask()).toEqual({ sha256, size: BYTES.length, received: 0 });
    expect(await send(bench, BYTES, FILE_PART_BYTES)).toMatchObject({ received: 0 });
    expect(await send(bench, BYTES, 0)).toMatchObject({ received: FILE_PART_BYTES });
    expect(await send(bench, BYTES, 0)).toMatchObject({ received: FILE_PART_BYTES });
    await bench.restart();
    expect(await ask()).toMatchObject({ received: FILE_PART_BYTES });
    expect(await readAll(bench, sha256)).toBeNull();
    await send(bench, BYTES, FILE_PART_BYTES);
    expect(await send(bench, BYTES, 2 * FILE_PART_BYTES)).toMatchObject({ received: BYTES.length });
    expect((await readAll(bench, sha256))?.equals(BYTES)).toBe(true);
    expect((await readAll(bench, sha256, FILE_PART_BYTES + 7))?.equals(BYTES.subarray(FILE_PART_BYTES + 7))).toBe(true);
    expect(await readAll(bench, sha256, BYTES.length)).toHaveLength(0);
  });

  it('of an empty file is complete at once', async () => {
    const bench = await openBench();
    expect(await readAll(bench, await upload(bench, ''))).toHaveLength(0);
  });

  it('is refused with another size, a part of a wrong length, or another content, of which nothing stays', async () => {
    const bench = await openBench();
    const sha256 = digestOf(BYTES);
    const part = (size: number, bytes: Buffer) =>
      rejection(bench.moduleFiles.upload(sha256, { size, offset: 0, data: bytes.toString('base64') }));
    expect(await part(BYTES.length, BYTES.subarray(0, 9))).toMatchObject({
      code: 'invalid_body',
      message: `/data must have ${FILE_PART_BYTES} bytes, and has 9`,
    });
    expect(await part(7, BYTES.subarray(0, 7))).toMatchObject({ code: 'file_damaged' });
    await send(bench, BYTES, 0);
    expect(await part(7, BYTES.subarray(0, 7))).toMatchObject({ code: 'invalid_body' });
    await send(bench, BYTES, FILE_PART_BYTES);
    const last = { size: BYTES.length, offset: 2 * FILE_PART_BYTES, data: Buffer.from('wrong').toString('base64') };
    expect(await rejection(bench.moduleFiles.upload(sha256, last))).toMatchObject({ code: 'file_damaged' });
    expect(await bench.db.selectFrom('module_file_parts').selectAll().execute()).toEqual([]);
    expect(await rejection(bench.moduleFiles.part(sha256, 0))).toMatchObject({ code: 'file_not_found' });
  });
});

describe('a module with a file', () => {
  it('is stored only with the file, and is another revision with another one', async () => {
    const bench = await openBench();
    const { modules } = bench.engine;
    const missing = digestOf('one');
    expect(await rejection(modules.upload(site(missing), ALICE))).toMatchObject({
      code: 'file_not_found',
      data: { missing: [missing] },
    });
    const first = await modules.upload(site(await upload(bench, 'one')), ALICE);
    expect(await modules.upload(site(missing), ALICE)).toMatchObject({ revision: 1, changed: false });
    const second = await modules.upload(site(await upload(bench, 'two')), ALICE);
    expect(second).toMatchObject({ revision: 2, changed: true });
    expect(second.sha256).not.toBe(first.sha256);
    expect((await modules.get('site', 1)).files).toEqual({ 'files/app.bin': missing });
    const unused = { ...site(missing), files: { 'files/app.bin': missing, 'more.bin': missing } };
    expect(await rejection(modules.upload(unused, ALICE))).toMatchObject({
      code: 'invalid_module',
      errors: [{ message: 'the module does not use the file "more.bin" that came with it' }],
    });
    expect(await rejection(modules.upload({ ...site(missing), files: {} }, ALICE))).toMatchObject({
      code: 'invalid_module',
      errors: [{ message: 'the file "files/app.bin" did not come with the module' }],
    });
  });

  it('may have its template in a file, which must be text of a bounded size', async () => {
    const bench = await openBench();
    const text = MODULE.replace('source: files/app.bin', 'template: site.liquid');
    const send = async (content: Buffer | string) =>
      bench.engine.modules.upload(
        { name: 'site', content: text, files: { 'site.liquid': await upload(bench, content) } },
        ALICE,
      );
    const problem = async (content: Buffer | string) => {
      const { errors } = (await rejection(send(content))) as { errors?: readonly { message: string }[] };
      return errors?.map(({ message }) => message);
    };
    expect(await problem(Buffer.from([0xff, 0xfe]))).toEqual(['the template "site.liquid" is not UTF-8 text']);
    expect(await problem(Buffer.alloc(FILE_PART_BYTES + 1, 'a'))).toEqual([
      'the template "site.liquid" is larger than 1048576 bytes, the most that a template may have',
    ]);
    expect(await problem('a\n{{ agent.nam }}')).toEqual([
      expect.stringMatching(/^site\.liquid:2:1: the agent has no "nam"/),
    ]);
    await send('{% if agent.name == "web-a" %}yes{% endif %}');
    const agent = await bench.agent('a');
    await bench.apply(agent, ['site']);
    expect(JSON.parse(agent.machine.get('/site') ?? '{}')).toMatchObject({ content: 'yes' });
  });

  it('reaches agents by its digest, and only those that can take it', async () => {
    const bench = await openBench();
    const sha256 = await upload(bench, 'one');
    await bench.engine.modules.upload(site(sha256), ALICE);
    const agent = await bench.agent('a');
    await bench.apply(agent, ['site']);
    expect(JSON.parse(agent.machine.get('/site') ?? '{}')).toMatchObject({ source: 'files/app.bin', sha256 });
    const old = await bench.agent('b', { connected: false });
    old.features = ['verify', 'confirm'];
    old.connect();
    await bench.settle();
    for (const work of [() => bench.apply(old, ['site']), () => bench.plan(old, ['site'])]) {
      expect(await rejection(work())).toMatchObject({ code: 'agent_too_old', data: { feature: 'files' } });
    }
  });
});

describe('a purge', () => {
  const content = 'name: site\nsupports: [{}]\nresources:\n  - directory-unix: {path: /srv/www, purge: true}\n';

  it.each([25, null])(
    'may delete as much as was allowed (%s), also when it is sent after a restart',
    async (allowed) => {
      const bench = await openBench();
      await bench.engine.modules.upload({ name: 'site', content }, ALICE);
      const agent = await bench.agent('a');
      agent.diligent = false;
      await bench.disconnect(agent);
      agent.connect();
      const id = await bench.start(agent, ['site'], allowed === null ? {} : { allowRemovals: allowed });
      expect(await bench.engine.operations.get(id)).toMatchObject({ status: 'queued' });
      await bench.disconnect(agent);
      await bench.restart();
      agent.connect();
      await bench.settle();
      const sent = agent.received.find(({ type }) => type === 'run');
      expect(sent).toMatchObject({ run_id: id, may_purge: allowed ?? 10 });
    },
  );

  it('reaches only agents that can make it', async () => {
    const bench = await openBench();
    await bench.engine.modules.upload({ name: 'site', content }, ALICE);
    const old = await bench.agent('a', { connected: false });
    old.features = ['verify', 'confirm', 'files'];
    old.connect();
    await bench.settle();
    for (const work of [() => bench.apply(old, ['site']), () => bench.plan(old, ['site'])]) {
      expect(await rejection(work())).toMatchObject({ code: 'agent_too_old', data: { feature: 'purge' } });
    }
  });
});

describe('a file', () => {
  it('stays while a revision names it, and goes a week after the last name', async () => {
    const bench = await openBench();
    const [one, two] = [await upload(bench, 'one'), await upload(bench, 'two')];
    await bench.engine.modules.upload(site(one), ALICE);
    bench.clock.advance(WEEK - 1_000);
    await bench.moduleFiles.prune();
    expect(await readAll(bench, two)).toHaveLength(3);
    await prune(bench);
    expect([await readAll(bench, one), await readAll(bench, two)]).toEqual([Buffer.from('one'), null]);
    expect(await bench.db.selectFrom('module_file_parts').select('sha256').execute()).toEqual([{ sha256: one }]);
    await bench.engine.modules.remove('site', ALICE);
    await prune(bench);
    expect(await readAll(bench, one)).toBeNull();
  });

  it('stays while an operation has its content or an agent has it on trial', async () => {
    const bench = await openBench();
    const one = await upload(bench, 'one');
    const { operation_id: id } = await bench.apply(await bench.agent('a'), [], { sources: [site(one)] });
    await bench.engine.modules.upload(site(await upload(bench, 'two')), ALICE);
    await bench.db.deleteFrom('module_revisions').where('revision', '=', 1).execute();
    await prune(bench);
    expect(await readAll(bench, one)).toEqual(Buffer.from('one'));
    await bench.db.updateTable('agents').set({ state_content_id: null }).execute();
    await bench.db
      .deleteFrom('operations')
      .where('operation_id', '=', id ?? '')
      .execute();
    await bench.db.deleteFrom('run_contents').execute();
    await prune(bench);
    expect(await readAll(bench, one)).toBeNull();
  });

  it('that is uploaded again counts as named again', async () => {
    const bench = await openBench();
    const one = await upload(bench, 'one');
    bench.clock.advance(WEEK - 1);
    await upload(bench, 'one');
    bench.clock.advance(2);
    await bench.moduleFiles.prune();
    expect(await readAll(bench, one)).not.toBeNull();
  });
});
