/** Puts a hash of the language's code in the place of `RULES_VERSION`, so that a build trusts only modules that its own rules have checked. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The code that decides which modules are valid, and the definitions that they give. */
const ROOMS = ['dist/src/kernel', 'dist/src/resources', 'dist/src/language'];
const LIBRARIES = ['yaml', 'typebox'];

/** @param {string} root directory of the package */
export const rulesVersion = (root) => ({
  name: 'rules-version',
  setup(build) {
    build.onLoad({ filter: /dist.src.language.rules-version\.js$/ }, () => ({
      contents: `export const RULES_VERSION = ${JSON.stringify(hashOf(root))};`,
      loader: 'js',
    }));
  },
});

function hashOf(root) {
  const hash = createHash('sha256');
  for (const room of ROOMS) {
    for (const name of readdirSync(join(root, room), { recursive: true }).sort()) {
      if (name.endsWith('.js')) hash.update(`${room}/${name}\0`).update(readFileSync(join(root, room, name)));
    }
  }
  for (const library of LIBRARIES) hash.update(readFileSync(join(root, 'node_modules', library, 'package.json')));
  return hash.digest('hex');
}
