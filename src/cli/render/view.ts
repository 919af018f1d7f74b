/** Turns a view into lines of text. */
import { unreachable } from '../../kernel/exhaustive.js';
import { type FieldsView, styled, type View } from '../view.js';
import type { TableOptions } from './table.js';
import { widthOf } from './width.js';

export async function renderView(view: View, options: TableOptions): Promise<readonly string[]> {
  switch (view.kind) {
    case 'table':
      return (await import('./table.js')).renderTable(view, options);
    case 'fields':
      return renderFields(view, options);
    case 'lines':
      return view.lines.map((line) => options.paint.line(line));
    case 'stack': {
      const parts = await Promise.all(view.views.map((part) => renderView(part, options)));
      const filled = parts.filter((part) => part.length > 0);
      return filled.flatMap((part, index) => (index === 0 ? part : ['', ...part]));
    }
    case 'headed': {
      const body = await renderView(view.body, options);
      return body.length === 0 ? [] : [options.paint.line(view.head), ...body];
    }
    default:
      return unreachable(view);
  }
}

function renderFields({ fields }: FieldsView, { paint }: TableOptions): readonly string[] {
  const width = fields.reduce((most, [label]) => Math.max(most, widthOf(label)), 0);
  return fields.map(([label, value]) =>
    `${paint.span(styled('dim', label))}${' '.repeat(width - widthOf(label))}  ${paint.line(value)}`.trimEnd(),
  );
}
