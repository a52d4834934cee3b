// @ts-check
// The place of an MCP App: where a tool has one, its frame stands here.

/**
 * @param {{server: string, uri: string, call: string, toolInput: any, toolResult: any}} _props
 * @returns {any}
 */
export function AppFrame(_props) {
  return null;
}
