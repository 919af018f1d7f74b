/** YAML output; loads the YAML library. */
import { Document, isScalar, visit } from 'yaml';
import { escapeYaml, isHostile } from './terminal-text.js';

/** Renders a body as one YAML document. Hostile characters become escapes in double-quoted strings. */
export function renderYaml(body: unknown): string {
  const document = new Document(body, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_key, node) => {
      if (isScalar(node) && typeof node.value === 'string' && isHostile(node.value)) node.type = 'QUOTE_DOUBLE';
    },
  });
  return escapeYaml(document.toString({ lineWidth: 0 }));
}
