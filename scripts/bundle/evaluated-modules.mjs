/**
 * Puts values in the place of modules that only make them: what is known when the bundle is made need not be found out at
 * each start. An export is plain data, a validator (`src/kernel/validator.ts`), whose check is compiled here, or validators by
 * name.
 */
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { Build } from 'typebox/schema';

/** @param {RegExp} filter paths of the modules as `tsc` has made them */
export const evaluatedModules = (filter) => ({
  name: 'evaluated-modules',
  setup(build) {
    build.onLoad({ filter }, async ({ path }) => {
      const exported = Object.entries(await import(pathToFileURL(path).href));
      const lines = exported.map(([name, value]) => `export const ${name} = ${expressionOf(name, value)};`);
      const contents = ["import { Guard } from 'typebox/guard';", ...lines].join('\n');
      return { contents, loader: 'js' };
    });
  },
});

function expressionOf(name, value) {
  if (typeof value?.check === 'function') return checkOf(name, value.schema);
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (members.some(([, member]) => typeof member?.check === 'function')) {
    return `{ ${members.map(([key, member]) => `${JSON.stringify(key)}: ${checkOf(key, member.schema)}`).join(', ')} }`;
  }
  const text = JSON.stringify(value);
  if (text !== undefined && isDeepStrictEqual(JSON.parse(text), value)) return text;
  throw new Error(`${name} is neither plain data nor a validator`);
}

function checkOf(name, schema) {
  const built = Build(schema);
  const { identifier, variables } = built.External();
  const functions = built.Functions();
  if (
    built.UseUnevaluated() ||
    !variables.every((one) => one instanceof RegExp) ||
    /\bHashing\b/.test(functions.join())
  ) {
    throw new Error(`the check of ${name} needs more than the bundle gives it`);
  }
  const outside = `const ${identifier} = [${variables.map(String).join(', ')}];`;
  return `(() => { ${outside} ${functions.join(';\n')}; return { check: (value) => ${built.Entry()} }; })()`;
}
