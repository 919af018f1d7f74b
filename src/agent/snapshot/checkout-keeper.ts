/** Saves which commit a checkout of git is at, and checks it out again; a checkout that the apply has made goes. */
import { commandFailure, exitedWith } from '../../resources/command.js';
import { commandsOf, readCheckout } from '../../resources/git/checkout.js';
import type { FileStep, Host } from '../../resources/host.js';
import type { Keeper } from './keeper.js';

interface Place {
  readonly path: string;
  readonly url: string;
  readonly user: string | null;
}

type SavedCheckout = Place &
  (
    | { readonly was: 'checkout'; readonly head: string }
    /** `missing`: directories on the way that were absent too, outermost first. */
    | { readonly was: 'absent'; readonly missing: readonly string[] }
  );

export const checkoutKeeper: Keeper<SavedCheckout> = {
  async save(bodies, { host }) {
    const saved: (SavedCheckout | string)[] = [];
    for (const body of bodies) saved.push(await saveOne(host, body));
    return saved;
  },
  restore: async (saved, phase, { host }) => (phase === 'state' ? restoreOne(host, saved) : null),
};

async function saveOne(host: Host, body: object): Promise<SavedCheckout | string> {
  const of = (name: string) => String((body as Readonly<Record<string, unknown>>)[name] ?? '');
  const user = of('user') === '' ? null : of('user');
  const want = { path: of('path'), url: of('url'), revision: of('revision'), user };
  const have = await readCheckout(host, want, 'drift');
  const place = { path: want.path, url: want.url, user };
  if (have.is === 'absent') return { ...place, was: 'absent', missing: have.fact.missing ?? [] };
  if (have.is === 'unknown') return have.refusal.message;
  if (have.is !== 'checkout' || have.head === null) return 'what git puts into a directory that was there stays';
  return { ...place, url: have.origin ?? want.url, was: 'checkout', head: have.head };
}

async function restoreOne(host: Host, saved: SavedCheckout): Promise<string | null> {
  const { path } = saved;
  if (saved.was === 'absent') {
    const [tree] = await host.commit([{ do: 'remove-tree', path }]);
    if (tree) return tree.message;
    const parents = saved.missing.toReversed().map((parent): FileStep => ({ do: 'remove-directory', path: parent }));
    // Directories on the way that hold something else by now stay.
    for (const step of parents) await host.commit([step]);
    return null;
  }
  const [fact] = host.observe([{ path, content: false, entries: false }]);
  if (fact?.type !== 'directory') return 'the checkout was removed, and is not fetched again';
  const git = commandsOf(saved);
  for (const command of [git.origin, git.checkout(saved.head)]) {
    const result = await host.run(command);
    if (!exitedWith(result, 0)) return commandFailure(command, result).message;
  }
  return null;
}
