/** An entry has either one resource or variants, and kinds stand below `resource`. */
import type { KindSet } from '../kind-set.js';
import type { RuleContext } from './rule.js';

export function checkChoice({ outline, mistakes }: RuleContext, kinds: KindSet): void {
  for (const { node, path } of outline.entries) {
    const [resource, variants] = [node.members.get('resource'), node.members.get('variants')];
    if (resource && variants) {
      const later = resource.key.start > variants.key.start ? resource : variants;
      const message = 'a resource has either "resource" or "variants", not both';
      mistakes.error(
        'resource_ambiguous',
        message,
        `${path}/${later === resource ? 'resource' : 'variants'}`,
        later.key,
      );
    } else if (!resource && !variants && ![...node.members.keys()].some((name) => kinds.has(name))) {
      mistakes.error('resource_missing', 'a resource needs "resource" or "variants"', path, node);
    }
  }
}
