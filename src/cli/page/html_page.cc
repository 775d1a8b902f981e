#include "cli/page/html_page.h"

#include <fmt/format.h>

#include "cli/page/style.h"

namespace xsched::cli {
namespace {

// `tag`: td or th.
std::string Row(const std::string& tag, const char* attributes, const std::vector<std::string>& texts,
                size_t before_numbers) {
  std::string cells;
  for (size_t i = 0; i < texts.size(); ++i) {
    cells += fmt::format("<{0}{1}{2}>{3}</{0}>", tag, attributes,
                         i < before_numbers ? "" : " class=\"number\"", Escaped(texts[i]));
  }
  return "<tr>" + cells + "</tr>\n";
}

}  // namespace

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" "
      "content=\"width=device-width\"/><title>{0}</title><style>\n{1}</style></head>\n<body>\n<main>\n"
      "<h1>{0}</h1>\n{2}</main>\n</body></html>\n",
      Escaped(title), kPageStyle, body);
}

std::string HtmlTable(const std::string& caption, const std::vector<std::string>& headings,
                      const std::vector<std::vector<std::string>>& rows, size_t texts) {
  std::string body;
  for (const std::vector<std::string>& row : rows) body += Row("td", "", row, texts);
  // A reader without a mouse can scroll what has the focus.
  return fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{0}\"><table><caption>{0}</caption>\n"
      "<thead>{1}</thead>\n<tbody>\n{2}</tbody></table></div>\n",
      Escaped(caption), Row("th", " scope=\"col\"", headings, texts), body);
}

}  // namespace xsched::cli
