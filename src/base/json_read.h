/* SPDX-License-Identifier: MIT */
/* Single members of small JSON documents that assay itself wrote. */
#ifndef ASSAY_BASE_JSON_READ_H
#define ASSAY_BASE_JSON_READ_H

/* The text of a member of the object; a number or a truth value as it stands in JSON.  NULL when it
 * is not there, when the document is not a JSON object, and without jansson.  The caller frees it.
 */
char *json_member_text(const char *document, const char *key);

#endif
