// Pages of graphs show every node and edge, escape foreign text, and lay out boxes and lines without overlaps.
//
// The layout is checked by view_layout.js where node is installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <nlohmann/json.hpp>

#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/core/graph_impl.h"
#include "lightcone/device/kernel.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/profile/profiler.h"
#include "lightcone/runtime/view/graph_view.h"
#include "lightcone/runtime/view/groups.h"
#include "lightcone/train/trace.h"
#include "nets.h"
#include "paths.h"
#include "processor_time.h"
#include "resnet20.h"

namespace lc {
namespace {

using nlohmann::json;

// The content of a page, as its script reads it.
struct Page {
  std::string html;
  std::vector<json> pictures;
  std::vector<std::string> texts, titles;

  explicit Page(std::string page) : html(std::move(page)) {
    const std::string begin = "<script type=\"application/json\"";
    for (std::size_t at = html.find(begin); at != std::string::npos; at = html.find(begin, at + 1)) {
      const std::size_t from = html.find('>', at) + 1;
      pictures.push_back(json::parse(html.substr(from, html.find("</script>", from) - from)));
    }
    texts = pictures.back()["texts"].get<std::vector<std::string>>();
    titles = pictures.back()["titles"].get<std::vector<std::string>>();
    pictures.pop_back();
  }
  std::string text(const json& index) const { return texts.at(index.get<std::size_t>()); }
  std::vector<std::string> all(const json& indices) const {
    std::vector<std::string> s;
    for (const json& i : indices) s.push_back(text(i));
    return s;
  }
};

std::vector<Graph> stages(const Graph& g, const Compiler& compiler = generic() | cpu({.threads = 1})) {
  std::vector<Graph> all;
  all.push_back(g.clone());
  all.push_back(transform(g, compiler).graph);
  return all;
}

std::string page_of(const std::vector<Graph>& stages, std::string_view title = "net") {
  std::vector<Picture> pictures;
  for (const Graph& g : stages) pictures.push_back({str_cat("stage ", pictures.size()), &g});
  return graph_html(pictures, title);
}

Graph training_graph() {
  Graph g;
  nn::Model<test::ResNet20> net(g);
  const auto x = typed::input<float, 4, 3, 32, 32>(g, "x");
  const auto y = typed::input<std::int64_t, 4>(g, "y");
  auto loss = trace(
      net, [](auto& net, auto x, auto y) { return cross_entropy(net(x), y); }, x, y);
  loss.loss().retrieve("loss");
  update(net, optim::AdamW{.lr = 0.01}, backward(std::move(loss)));
  return g;
}

// A transformer of `layers` layers with some 68 nodes each.
Graph deep(int layers) {
  test::Net n;
  Tensor x = n.input("x", {1, 16, 32});
  for (int i = 0; i < layers; ++i) {
    const std::string at = str_cat("layers.", i, ".");
    x = x + n.dense(gelu(n.dense(n.norm(x, at + "norm", 32), at + "up", 32, 64)), at + "down", 64, 32);
    x = x + softmax(n.dense(n.norm(x, at + "norm2", 32), at + "mix", 32, 32), -1);
  }
  return n.done(x);
}

// A graph without names, with all nodes on one source line.
Graph flat(int nodes) {
  Graph g;
  std::vector<Tensor> all{g.input("x", {8})};
  unsigned random = 1;
  const auto before = [&] {
    random = random * 1664525 + 1013904223;
    const std::size_t reach = (random >> 28) == 0 ? 400 : 6;
    return all[all.size() - 1 - (random >> 8) % std::min(all.size(), reach)];
  };
  for (int i = 0; i < nodes; ++i) all.push_back(prim::add(prim::mul(before(), before()), before()));
  g.output("y", all.back());
  return g;
}

std::map<std::string, std::vector<Graph>> nets() {
  std::map<std::string, std::vector<Graph>> all;
  all.emplace("mlp", stages(test::mlp()));
  all.emplace("vgg", stages(test::vgg()));
  all.emplace("resnet", stages(test::resnet()));
  all.emplace("mobilenet", stages(test::mobilenet()));
  all.emplace("bert", stages(test::bert()));
  all.emplace("llama", stages(test::llama()));
  all.emplace("training", stages(training_graph()));
  return all;
}

TEST(View, EveryNodeAndEdgeIsThere) {
  for (const auto& [name, graphs] : nets()) {
    const Page page(page_of(graphs));
    ASSERT_EQ(page.pictures.size(), graphs.size());
    for (std::size_t k = 0; k < graphs.size(); ++k) {
      const Graph& g = graphs[k];
      const json& picture = page.pictures[k];
      const auto live = g.live();
      std::multiset<std::pair<int, int>> wanted, there;
      std::set<int> nodes;
      std::size_t roots = 0;
      for (NodeId id = 0; id < g.size(); ++id) {
        if (!live[id] || g[id].op == Op::Constant) continue;
        nodes.insert(static_cast<int>(id));
        for (const Edge& e : g[id].in)
          if (g[e.node].op != Op::Constant) wanted.insert({static_cast<int>(e.node), static_cast<int>(id)});
      }
      for (const Root& r : g.roots()) wanted.insert({static_cast<int>(r.edge.node), -1}), ++roots;
      const auto ids = picture["id"].get<std::vector<int>>();
      const auto edges = picture["edges"].get<std::vector<int>>();
      for (std::size_t e = 0; e < edges.size(); e += 3)
        there.insert({ids.at(static_cast<std::size_t>(edges[e])), ids.at(static_cast<std::size_t>(edges[e + 1]))});
      EXPECT_EQ(there, wanted) << name << " " << k;
      EXPECT_EQ(std::set<int>(ids.begin(), ids.end()).size(), nodes.size() + 1) << name;  // -1 stands for all results
      EXPECT_EQ(ids.size(), nodes.size() + roots) << name;
      EXPECT_EQ(picture["writes"].size(), 2 * g.assignments().size()) << name;
      for (const char* column : {"look", "label", "shape", "about", "group", "beside"})
        EXPECT_EQ(picture[column].size(), ids.size()) << name << " " << column;
    }
  }
}

TEST(View, TextsOfStrangersStayTexts) {
  const std::string evil = "</script><img src=x onerror=\"alert('1')\">\\ \n\x01 <!-- & \" ' \xe2\x80\xa8 layers.0";
  Graph g;
  const Tensor w = g.parameter(evil + ".weight", {4}, DType::F32);
  g.output("<b>" + evil, g.input(evil, {4}) * w + 1.0);
  const std::string html = graph_html({{"</script><script>" + evil, &g}}, "<title></title>" + evil);
  Graph tame;
  tame.output("y", tame.input("x", {4}));
  const std::string plain = graph_html({{"a", &tame}});
  const auto count = [](const std::string& s, std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = s.find(what); at != std::string::npos; at = s.find(what, at + 1)) ++n;
    return n;
  };
  for (const char* tag : {"<script", "</script", "<img", "<title", "<b>", "<!--"})
    EXPECT_EQ(count(html, tag), count(plain, tag)) << tag;
  const Page page(html);
  const auto labels = page.all(page.pictures[0]["label"]);
  for (const std::string& s : {evil, evil + ".weight", "<b>" + evil})
    EXPECT_NE(std::find(labels.begin(), labels.end(), s), labels.end()) << s;
  EXPECT_EQ(page.titles[0], "</script><script>" + evil);
}

TEST(View, NothingIsFetched) {
  const std::string html = page_of(stages(test::mlp()));
  for (const char* what : {"http:", "https:", " src=", " href=", "url(", "@import", "fetch("})
    EXPECT_EQ(html.find(what), std::string::npos) << what;
}

std::set<std::string> titles(const Graph& g) {
  std::set<std::string> all;
  for (NodeId id = 0; id < g.size(); ++id)
    if (g[id].op == Op::Kernel) all.insert(title_of(g[id]));
  return all;
}

TEST(View, KernelsAreNamedByWhatTheyCompute) {
  const Compiler compiler = generic() | cpu({.threads = 1});
  auto found = titles(transform(test::mlp(), compiler).graph);
  EXPECT_TRUE(found.contains("linear, relu, linear [4, 512] x [512, 512]")) << testing::PrintToString(found);
  EXPECT_TRUE(found.contains("linear [4, 512] x [512, 10]")) << testing::PrintToString(found);
  found = titles(transform(test::vgg(), compiler).graph);
  EXPECT_TRUE(found.contains("conv [1, 3, 32, 32] x [16, 3, 3, 3], relu")) << testing::PrintToString(found);
  found = titles(transform(test::attention_alone(), compiler).graph);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const std::string& s) {
    return s.starts_with("attention [8, 64] over 8 (matmul, ") && s.find("softmax") != std::string::npos;
  })) << testing::PrintToString(found);
  Graph g;
  const Tensor x = g.input("x", {16, 64});
  g.output("y", softmax(x * 2.0, -1));
  EXPECT_EQ(titles(transform(g, compiler).graph), std::set<std::string>{"mul, softmax"});
  for (const auto& [name, graphs] : nets())
    for (const std::string& title : titles(graphs[1])) {
      EXPECT_FALSE(title.starts_with("k_")) << name << ": " << title;
      EXPECT_EQ(title.find("operator"), std::string::npos) << name << ": " << title;
    }
}

TEST(View, LayersAndCallsAreGroups) {
  const Page page(page_of(stages(test::llama())));
  const json& groups = page.pictures[0]["groups"];
  const auto names = page.all(groups["name"]);
  for (const char* name : {"model", "layers", "layers.0", "layers.1", "self_attn", "mlp"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end())
        << name << " of " << testing::PrintToString(names);
  const auto silu = std::find(names.begin(), names.end(), "silu");
  ASSERT_NE(silu, names.end());
  EXPECT_NE(page.text(groups["where"][static_cast<std::size_t>(silu - names.begin())]).find("llama_layers.cpp:"),
            std::string::npos);
  // a residual sum, which reads no parameter, belongs to its layer
  const Graph g = test::llama();
  const view::Grouping grouping = view::group_nodes(g);
  for (NodeId id = 0; id < g.size(); ++id)
    if (grouping.drawn[id] && std::string_view(g[id].where.file).ends_with("llama_graph.cpp") &&
        std::string_view(g[id].where.op) == "operator+") {
      ASSERT_GE(grouping.of[id], 0);
      EXPECT_TRUE(grouping.groups[static_cast<std::size_t>(grouping.of[id])].name.starts_with("layers."))
          << g.label(id);
    }
}

// All batch norms are on a few source lines and share scalars (1 - momentum, the number of pixels). Still, each is in
// its own layer.
TEST(View, LayersOfOneLineStayApart) {
  const Graph g = training_graph();
  const view::Grouping k = view::group_nodes(g);
  int seen = 0;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!k.drawn[id] || std::string_view(g[id].where.op) != "batch_norm") continue;
    for (const Edge& e : g[id].in) {
      const std::string& name = g[e.node].name;
      if (!name.ends_with(".weight")) continue;
      const std::string layer = name.substr(0, name.rfind('.'));
      const std::string last = layer.substr(layer.rfind('.') + 1);
      bool within = false;
      for (int at = k.of[id]; at >= 0; at = k.groups[static_cast<std::size_t>(at)].parent)
        within = within || k.groups[static_cast<std::size_t>(at)].name == last;
      EXPECT_TRUE(within) << name;
      ++seen;
    }
  }
  EXPECT_GE(seen, 19);
  std::set<std::string> top;
  for (const view::Group& group : k.groups)
    if (group.parent < 0) top.insert(group.name);
  for (const char* name : {"conv1", "bn1", "layer1", "layer2", "layer3", "backward", "optim.step"})
    EXPECT_TRUE(top.contains(name)) << name << " of " << testing::PrintToString(top);
}

// The graph of groups and nodes at each level has no cycle, and no level has too many items.
void check_grouping(const Graph& g, const std::string& name) {
  const view::Grouping k = view::group_nodes(g);
  const auto parent = [&](int group) { return k.groups[static_cast<std::size_t>(group)].parent; };
  for (std::size_t i = 0; i < k.groups.size(); ++i) EXPECT_LT(k.groups[i].parent, static_cast<int>(i)) << name;
  using Item = std::pair<bool, int>;  // true and a group's number, or false and a node's
  std::map<int, std::map<Item, std::set<Item>>> levels;
  const auto chain = [&](NodeId id) {
    std::vector<std::pair<int, Item>> c{{k.of[id], {false, static_cast<int>(id)}}};
    for (int at = k.of[id]; at >= 0; at = parent(at)) c.push_back({parent(at), {true, at}});
    std::reverse(c.begin(), c.end());
    return c;
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    if (!k.drawn[id] || k.beside[id]) continue;
    const auto to = chain(id);
    for (const auto& [level, item] : to) levels[level][item];
    for (const Edge& e : g[id].in) {
      if (!k.drawn[e.node] || k.beside[e.node]) continue;
      const auto from = chain(e.node);
      std::size_t d = 0;
      while (d < from.size() && d < to.size() && from[d] == to[d]) ++d;
      ASSERT_TRUE(d < from.size() && d < to.size() && from[d].first == to[d].first) << name;
      levels[to[d].first][from[d].second].insert(to[d].second);
    }
  }
  for (auto& [level, readers] : levels) {
    EXPECT_LE(readers.size(), 90u) << name << ": too many in one group";
    std::map<Item, int> waits;
    for (const auto& [item, to] : readers)
      for (const Item& t : to) ++waits[t];
    std::vector<Item> ready;
    for (const auto& [item, to] : readers)
      if (!waits.contains(item)) ready.push_back(item);
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (const Item& t : readers[ready[i]])
        if (--waits[t] == 0) ready.push_back(t);
    EXPECT_EQ(ready.size(), readers.size()) << name << ": groups that read each other";
  }
}

TEST(View, GroupsAreNoCircles) {
  for (const auto& [name, graphs] : nets())
    for (const Graph& g : graphs) check_grouping(g, name);
  check_grouping(flat(2000), "flat");
  check_grouping(deep(150), "deep");
  // two layers that alternate
  test::Net n;
  Tensor a = n.input("a", {4, 8}), b = n.input("b", {4, 8});
  for (int i = 0; i < 6; ++i) {
    const Tensor c = n.dense(a, str_cat("left.", i), 8, 8), d = n.dense(b, str_cat("right.", i), 8, 8);
    a = d + c, b = tanh(c);
  }
  check_grouping(n.done(a + b), "turns");
}

TEST(View, TenThousandNodesAreQuick) {
  for (const auto& [name, g] : {std::pair{"deep", deep(148)}, std::pair{"flat", flat(5600)}}) {
    const auto live = g.live();
    ASSERT_GE(std::count(live.begin(), live.end(), true), 9900) << name;
    std::string page;
    const double seconds = test::seconds([&, &g = g] { page = graph_html({{"as written", &g}}); });
    std::printf("%s: %.3f s, %zu bytes\n", name, seconds, page.size());
    EXPECT_LT(seconds, 2) << name;
    EXPECT_LT(page.size(), 2u << 20) << name;
    if (const char* folder = std::getenv("LIGHTCONE_VIEW_PAGES"))
      std::ofstream(std::filesystem::path(folder) / str_cat(name, ".html")) << page;
  }
}

TEST(View, LayoutKeepsToItsRules) {
  if (std::system("node --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no node to run the page's layout with";
  const char* kept = std::getenv("LIGHTCONE_VIEW_PAGES");  // a folder that keeps the pages for inspection
  const std::filesystem::path folder =
      kept ? std::filesystem::path(kept)
           : std::filesystem::temp_directory_path() / str_cat("lightcone_view_", std::rand());
  std::filesystem::create_directories(folder);
  auto all = nets();
  all["deep"].push_back(deep(148));
  all["flat"].push_back(flat(5600));
  std::string command = str_cat("MOST_MS=2000 node ", paths::kSource, "/tests/runtime/view_layout.js");
  for (const auto& [name, graphs] : all) {
    const auto path = folder / (name + ".html");
    std::ofstream(path) << page_of(graphs, name);
    command += str_cat(" ", path.string());
  }
  EXPECT_EQ(std::system((command + " 2>&1").c_str()), 0);
  if (!kept) std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lc
