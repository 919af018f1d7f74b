/** Checks path parameters, which the router has percent-decoded once. */
import type { TSchema } from 'typebox';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';

/** Control characters, and what separates the parts of paths: no name of ours has them. */
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f/\\]/;

/**
 * Makes the checker of a route's parameters, which throws `invalid_path`.
 * @param schema undefined when the route has none
 */
export function paramsChecker(schema: TSchema | undefined): (params: unknown) => unknown {
  if (!schema) return () => undefined;
  const check = validator(schema);
  return (params) => {
    const errors = [...check.problems(params), ...forbidden(params)];
    if (errors.length === 0) return params;
    const list = errors.map(({ path, message }) => `${path.slice(1)} ${message}`).join(', ');
    throw new Fault('invalid_path', `the path is not valid: ${list}`, { errors });
  };
}

function forbidden(params: unknown): readonly FaultDetail[] {
  return Object.entries(params ?? {})
    .filter(([, value]) => FORBIDDEN.test(String(value)))
    .map(([name]) => ({ path: `/${name}`, message: 'must not hold slashes or control characters' }));
}
