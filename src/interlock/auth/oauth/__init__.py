"""The rules of OAuth as MCP has them, without I/O: documents, challenges, and procedures that say what they want done."""
