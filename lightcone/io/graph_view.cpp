#include "lightcone/io/graph_view.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "lightcone/core/op.h"

namespace lc {
namespace {

std::string escape(std::string_view s) {
  std::string out;
  for (char c : s) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string shorten(std::string s, std::size_t limit) {
  if (s.size() > limit) s = "..." + s.substr(s.size() - (limit - 3));
  return s;
}

constexpr double kWidth = 168, kHeight = 40, kGapX = 18, kGapY = 46;

// Layers by longest path from the inputs, each ordered by where its operands lie.
class Layout {
 public:
  explicit Layout(const Graph& g);
  std::string svg() const;

 private:
  void order();
  bool drawn(NodeId id) const { return alive_[id] && g_[id].op != Op::Constant; }
  double x(NodeId id) const { return static_cast<double>(place_.at(id)) * (kWidth + kGapX); }
  double y(NodeId id) const { return layer_[id] * (kHeight + kGapY); }
  std::string box(NodeId id) const;
  std::string line(NodeId from, NodeId to, const char* style) const;

  const Graph& g_;
  std::vector<bool> alive_;
  std::vector<int> layer_;
  std::vector<std::vector<NodeId>> layers_;
  std::map<NodeId, int> place_;
  std::size_t widest_ = 0;
};

Layout::Layout(const Graph& g) : g_(g), alive_(g.live()), layer_(g.size(), 0) {
  std::vector<NodeId> leaves;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!drawn(id)) continue;
    for (const Edge& e : g[id].in)
      if (drawn(e.node)) layer_[id] = std::max(layer_[id], layer_[e.node] + 1);
  }
  // a leaf is drawn just above its first reader, not at the top
  std::vector<int> reader(g.size(), -1);
  for (NodeId id = 0; id < g.size(); ++id)
    if (drawn(id))
      for (const Edge& e : g[id].in)
        if (g[e.node].in.empty())
          reader[e.node] = reader[e.node] < 0 ? layer_[id] - 1 : std::min(reader[e.node], layer_[id] - 1);
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!drawn(id)) continue;
    if (g[id].in.empty() && reader[id] > 0) layer_[id] = reader[id];
    layers_.resize(std::max(layers_.size(), static_cast<std::size_t>(layer_[id]) + 1));
    layers_[static_cast<std::size_t>(layer_[id])].push_back(id);
  }
  order();
}

void Layout::order() {
  for (auto& row : layers_) {
    std::vector<std::pair<double, NodeId>> wish;
    for (NodeId id : row) {
      double sum = 0;
      int n = 0;
      for (const Edge& e : g_[id].in)
        if (place_.contains(e.node)) sum += place_[e.node], ++n;
      wish.emplace_back(n ? sum / n : 1e9, id);
    }
    std::stable_sort(wish.begin(), wish.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < wish.size(); ++i) row[i] = wish[i].second, place_[row[i]] = static_cast<int>(i);
    widest_ = std::max(widest_, row.size());
  }
}

std::string Layout::box(NodeId id) const {
  static constexpr const char* colours[] = {"#e8f0fe", "#fff8e1", "#fde7e7", "#eeeeee", "#e6f4ea", "#f3e8fd"};
  const Node& n = g_[id];
  const std::string shape = std::string(name(n.dtype)) + str(n.shape);
  char text[400];
  std::snprintf(text, sizeof text,
                "<g><rect x='%.0f' y='%.0f' width='%.0f' height='%.0f' rx='5' fill='%s' stroke='#888'/>", x(id), y(id),
                kWidth, kHeight, colours[static_cast<int>(info(n.op).kind)]);
  std::string s = text;
  const std::string tip = cat("%", id, " ", g_.label(id), " ", shape, n.where.known() ? "\n" + n.where.str() : "");
  s += "<title>" + escape(tip) + "</title>";
  std::snprintf(text, sizeof text, "<text x='%.0f' y='%.0f' font-size='11'>", x(id) + 6, y(id) + 16);
  s += text + escape(shorten(g_.label(id), 25)) + "</text>";
  std::snprintf(text, sizeof text, "<text x='%.0f' y='%.0f' font-size='9' fill='#555'>", x(id) + 6, y(id) + 31);
  return s + text + escape(shorten(shape, 30)) + "</text></g>\n";
}

std::string Layout::line(NodeId from, NodeId to, const char* style) const {
  char text[300];
  const double x0 = x(from) + kWidth / 2, y0 = y(from) + kHeight, x1 = x(to) + kWidth / 2, y1 = y(to);
  std::snprintf(text, sizeof text,
                "<path d='M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f' fill='none' stroke='#777' %s/>\n", x0, y0, x0,
                y0 + 22, x1, y1 - 22, x1, y1, style);
  return text;
}

std::string Layout::svg() const {
  char head[200];
  std::snprintf(head, sizeof head,
                "<svg xmlns='http://www.w3.org/2000/svg' viewBox='-10 -10 %.0f %.0f' font-family='monospace'>\n",
                static_cast<double>(widest_) * (kWidth + kGapX) + 20,
                static_cast<double>(layers_.size()) * (kHeight + kGapY) + 20);
  std::string s = head;
  for (const auto& row : layers_)
    for (NodeId id : row)
      for (const Edge& e : g_[id].in)
        if (drawn(e.node)) s += line(e.node, id, e.view.identity() ? "" : "stroke-dasharray='4 3'");
  for (const Assignment& a : g_.assignments())
    if (drawn(a.state) && drawn(a.next.node)) s += line(a.next.node, a.state, "stroke-dasharray='1 3' opacity='0.5'");
  for (const auto& row : layers_)
    for (NodeId id : row) s += box(id);
  for (const Root& r : g_.roots()) {
    if (!drawn(r.edge.node)) continue;
    char text[120];
    std::snprintf(text, sizeof text, "<text x='%.0f' y='%.0f' font-size='11' font-weight='bold'>", x(r.edge.node),
                  y(r.edge.node) + kHeight + 13);
    s += text + escape("-> " + r.name) + "</text>\n";
  }
  return s + "</svg>\n";
}

constexpr std::string_view kPage =
    R"(<!doctype html><html><head><meta charset="utf-8"><title>Lightcone graph</title><style>
body{margin:0;font-family:sans-serif;display:flex;flex-direction:column;height:100vh}
nav{padding:8px;border-bottom:1px solid #ccc}button{margin-right:6px;padding:4px 10px}
button.on{background:#dde7ff}.pane{flex:1;display:none;overflow:hidden}.pane.on{display:block}
svg{width:100%;height:100%;cursor:grab}small{color:#666}</style></head><body><nav></nav>
)";
constexpr std::string_view kScript = R"(<script>
const nav=document.querySelector('nav'),panes=[...document.querySelectorAll('.pane')];
panes.forEach((p,i)=>{const b=document.createElement('button');b.textContent=p.dataset.title;nav.append(b);
b.onclick=()=>{panes.forEach((q,k)=>{q.classList.toggle('on',k==i);nav.children[k].classList.toggle('on',k==i)})};
const s=p.querySelector('svg'),v=s.viewBox.baseVal;let drag=null;v.height=Math.min(v.height,v.width*0.6);
s.onwheel=e=>{e.preventDefault();const r=s.getBoundingClientRect(),f=e.deltaY>0?1.15:1/1.15,x=v.x+v.width*(e.clientX-r.left)/r.width,y=v.y+v.height*(e.clientY-r.top)/r.height;
v.x=x-(x-v.x)*f;v.y=y-(y-v.y)*f;v.width*=f;v.height*=f};
s.onpointerdown=e=>{drag=[e.clientX,e.clientY,v.x,v.y];s.setPointerCapture(e.pointerId)};
s.onpointermove=e=>{if(!drag)return;const r=s.getBoundingClientRect(),k=Math.max(v.width/r.width,v.height/r.height);v.x=drag[2]-(e.clientX-drag[0])*k;v.y=drag[3]-(e.clientY-drag[1])*k};
s.onpointerup=()=>drag=null});
const h=document.createElement('small');h.textContent='wheel: zoom, drag: move, hover: shapes and source lines';nav.append(h);nav.children[0].click();
</script></body></html>
)";

}  // namespace

std::string graph_svg(const Graph& g) { return Layout(g).svg(); }

std::string graph_html(const std::vector<Picture>& pictures) {
  std::string s(kPage);
  for (const Picture& p : pictures)
    s += "<div class='pane' data-title=\"" + escape(p.title) + "\">" + graph_svg(*p.graph) + "</div>\n";
  return s + std::string(kScript);
}

}  // namespace lc
