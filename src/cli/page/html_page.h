// Web pages that need nothing else: one file, with plots as SVG. They are XML as well, and use the style of
// plan/page.css. Pure.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

// Text as a part of HTML.
std::string Escaped(const std::string& text);

// `body`: HTML.
std::string HtmlPage(const std::string& title, const std::string& body);

// The first `texts` columns are text, and the other ones are numbers. Headings and cells: text.
std::string HtmlTable(const std::string& caption, const std::vector<std::string>& headings,
                      const std::vector<std::vector<std::string>>& rows, size_t texts);

}  // namespace xsched::cli
