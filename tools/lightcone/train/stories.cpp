// The text that the story model learns: short stories for children, made by a grammar. Every story has a hero, a
// friend, a place and a plot (a lost thing, a fear, a quarrel, a rescue, a wish, a surprise, a lesson, a storm). Names,
// pronouns and things stay the same throughout, so that a small model can learn to keep them.
#include "stories.h"

#include <cctype>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/io/data/seeded_random.h"

namespace lc::tool {
namespace {

using Words = std::vector<std::string>;
struct Both {
  std::string first, second;
};

const Words kGirls{"Lily", "Mia", "Anna", "Sue", "Emma", "Rose", "Nora", "Ella", "Zoe", "Lucy", "Ivy", "Clara"};
const Words kBoys{"Tom", "Ben", "Max", "Sam", "Leo", "Jack", "Finn", "Oscar", "Noah", "Theo", "Hugo", "Adam"};
const std::vector<Both> kAnimals{{"dog", "barked"},  {"cat", "meowed"},   {"rabbit", "hopped"}, {"bird", "sang"},
                                 {"fox", "smiled"},  {"bear", "nodded"},  {"duck", "quacked"},  {"mouse", "squeaked"},
                                 {"frog", "jumped"}, {"horse", "neighed"}};
const Words kLooks{"little", "small", "brave", "kind", "funny", "shy", "clever", "happy", "curious", "gentle", "quiet"};
const Words kColors{"red", "blue", "green", "yellow", "white", "brown", "orange", "purple"};
const Words kThings{"ball", "kite", "boat", "hat", "book", "drum", "car", "doll",  "spoon",
                    "shoe", "bell", "lamp", "cup", "box",  "ring", "key", "scarf", "basket"};
const std::vector<Both> kPlaces{{"the park", "under a tall tree"},  {"the forest", "behind a big rock"},
                                {"the beach", "in the warm sand"},  {"the garden", "between the flowers"},
                                {"the farm", "next to the barn"},   {"the river", "near the old bridge"},
                                {"the hill", "on top of the hill"}, {"the village", "beside the well"}};
const Words kFoods{"cake", "soup", "bread", "apples", "cookies", "berries", "pie", "honey", "pancakes", "carrots"};
const std::vector<Both> kWeather{
    {"sunny", "The sun was warm and the sky was blue."}, {"windy", "The wind was strong and the leaves were dancing."},
    {"rainy", "The rain fell softly on the roof."},      {"cold", "There was snow on the ground."},
    {"foggy", "There was fog over the fields."},         {"bright", "The birds were singing in the trees."}};
const Words kFamily{"mom", "dad", "grandma", "grandpa", "sister", "brother"};
const Words kOpenings{"Once upon a time, there was {a_look} {kind} named {name}.",
                      "Once upon a time, {a_look} {kind} named {name} lived near {place}.",
                      "There was once {a_look} {kind} named {name}.",
                      "One day, {a_look} {kind} named {name} woke up early.",
                      "Long ago, near {place}, there lived {a_look} {kind} named {name}.",
                      "In a small house near {place}, there lived {a_look} {kind} named {name}."};
const Words kEndings{"And they lived happily ever after.", "That night, {name} slept very well.",
                     "They were friends forever.",         "Then they all went home and ate {food}.",
                     "{name} smiled and hugged {friend}.", "It was a very good day."};
const Words kHellos{"\"Hello, {friend}!\" said {name}.", "\"Hi, {friend},\" said {name} with a smile.",
                    "{name} waved to {friend}. \"Come and play with me!\""};
const std::vector<Both> kFears{{"the dark", "It was black and quiet."},
                               {"the deep water", "It was cold and deep."},
                               {"the high bridge", "It was old and it moved in the wind."},
                               {"loud noises", "They made {his} heart beat fast."},
                               {"the big slide", "It was so very high."}};
const std::vector<Both> kTroubles{{"had fallen into a deep hole", "a long rope"},
                                  {"was stuck in a tree", "a tall ladder"},
                                  {"had hurt its foot", "a clean cloth"},
                                  {"was caught under a branch", "a strong stick"},
                                  {"could not swim back", "a little boat"}};

// A plot: a list of alternative sentences for each step, followed by one of the morals.
struct Plot {
  std::string name;
  std::vector<Words> sentences;
  Words morals;
};
const std::vector<Plot> kPlots{
    {"lost",
     {{"One day, {name} could not find {his} {color} {thing}.", "But one morning, the {color} {thing} was gone."},
      {"{He} looked under the bed and behind the door, but it was not there.",
       "{He} looked in every room, but {he} could not find it."},
      {"{name} was very sad.", "{name} started to cry.", "{He} did not know what to do."},
      {"\"Why are you sad?\" asked {friend}.", "{friend} came and asked, \"What is wrong, {name}?\""},
      {"\"I lost my {thing},\" said {name}.", "\"My {color} {thing} is gone,\" said {name}."},
      {"\"Do not worry. I will help you,\" said {friend}.", "\"Let us look for it together,\" said {friend}."},
      {"They went to {place} and looked everywhere.", "They walked to {place} and asked the {pet}."},
      {"The {pet} {noise} and showed them the way.", "A {pet} came and helped them look."},
      {"At last, they found the {thing} {spot}.", "And there it was! The {color} {thing} was {spot}."},
      {"\"Thank you so much!\" said {name}.", "{name} was so happy that {he} jumped up and down."}},
     {"{name} learned to take good care of {his} things.",
      "{name} learned that friends can help us find what we have lost."}},
    {"fear",
     {{"But {name} was afraid of {what}."},
      {"{why}"},
      {"\"I cannot do it,\" said {name}.", "\"I am too small,\" said {name}."},
      {"{friend} took {his} hand.", "{friend} sat down next to {him}."},
      {"\"I was afraid too,\" said {friend}. \"We can do it together.\"",
       "\"Take a deep breath,\" said {friend}. \"I am here with you.\""},
      {"{name} closed {his} eyes and counted to three.", "{name} took a deep breath and made a small step."},
      {"Then {he} made one more step, and one more.", "{He} was very careful and did not look down."},
      {"\"I did it!\" {he} shouted.", "\"Look, {friend}, I did it!\" said {name}."},
      {"The {pet} {noise} and everyone was happy.", "{friend} clapped {fhis} hands."}},
     {"{name} learned that being brave means to try even when you are afraid.", "{name} was not afraid any more."}},
    {"quarrel",
     {{"{name} and {friend} found a {color} {thing} {spot}.",
       "One day, {name} and {friend} saw a {color} {thing} {at}."},
      {"\"It is mine!\" said {name}.", "\"I saw it first!\" said {name}."},
      {"\"No, it is mine!\" said {friend}."},
      {"They pulled and pulled until the {thing} broke.", "They pulled so hard that they both fell down."},
      {"Now they were both sad.", "{name} and {friend} did not talk for a long time."},
      {"The old {pet} saw them and shook its head.", "{His} {family} saw them and came outside."},
      {"\"If you share, you can both play,\" said the {pet}.",
       "\"You are friends,\" said {name}'s {family}. \"You can share.\""},
      {"\"I am sorry,\" said {name}.", "{name} looked at {friend} and said, \"I am sorry.\""},
      {"\"I am sorry too,\" said {friend}."},
      {"They fixed the {thing} together and played all day.",
       "Then they played with the {thing} together until the sun went down."}},
     {"They learned that sharing is more fun than fighting.", "From that day on, they always took turns."}},
    {"rescue",
     {{"On the way to {place}, {name} heard a sound.", "{At}, {name} heard someone cry."},
      {"It was a small {pet}.", "{He} saw a little {pet}."},
      {"The {pet} {trouble}."},
      {"\"Help me, please!\" said the {pet}.", "\"Oh no! Poor {pet},\" said {name}."},
      {"{name} thought hard. Then {he} had an idea.", "{name} ran to get {friend}."},
      {"{name} and {friend} came back with {fix}.", "{friend} brought {fix}."},
      {"They worked together and did not stop.", "It was hard work, but they did not give up."},
      {"Soon, the {pet} was safe.", "At last, the {pet} was free."},
      {"\"Thank you, {name}! Thank you, {friend}!\" said the {pet}.", "The {pet} {noise} to say thank you."},
      {"{name} gave the {pet} some {food}.", "They sat in the grass and ate {food} together."}},
     {"{name} learned that even a small friend can be a big help.", "{name} was proud to have helped."}},
    {"wish",
     {{"{name} wanted a {color} {thing} more than anything.",
       "{name} had one big wish. {He} wanted a {color} {thing}."},
      {"\"Can I have one, please?\" {he} asked {his} {family}."},
      {"\"You can make one,\" said {his} {family}. \"It will take some time.\"",
       "\"You must work for it,\" said {his} {family}."},
      {"So {name} helped {friend} {at} every day.", "So {name} picked apples and carried water every day."},
      {"On the first day, {he} was tired.", "It was hard, and {his} hands hurt."},
      {"\"I will not give up,\" said {name}."},
      {"On the second day, it was a little easier.", "{friend} came to help {him}."},
      {"On the last day, {his} {family} gave {him} a box.", "After one week, the work was done."},
      {"{name} opened it, and inside was a {color} {thing}.", "And there it was, a new {color} {thing}."},
      {"{He} danced with joy.", "\"It is beautiful!\" said {name}."}},
     {"{name} learned that good things take time.", "{name} was happy that {he} did not give up."}},
    {"surprise",
     {{"It was {name}'s birthday, but nobody said a word.", "{name} woke up and it was {his} birthday."},
      {"{He} looked for {friend}, but {friend} was not at home.", "{He} waited for {friend}, but nobody came."},
      {"{name} walked to {place} all alone.", "{name} was sad and went to {place}."},
      {"{He} sat down {spot}.", "It was very quiet there."},
      {"Then {he} heard a whisper. \"Shh! {He} is here!\"", "Then {he} saw something {color} move."},
      {"\"Surprise!\" shouted {friend} and all the friends."},
      {"There was a big cake and a {color} {thing}.", "There were {food} and songs and games."},
      {"Even the {pet} was there and {noise}.", "The {pet} wore a funny hat."},
      {"{name} laughed and laughed.", "\"I thought you forgot me!\" said {name}."},
      {"\"We would never forget you,\" said {friend}."}},
     {"{name} said it was the best day ever.", "{name} knew that {he} had the best friends in the world."}},
    {"lesson",
     {{"One day, {name} played with the {color} {thing} inside the house.",
       "One day, {name} took the {color} {thing} of {his} {family}."},
      {"\"Be careful,\" {his} {family} had said."},
      {"But {name} ran too fast, and the {thing} fell and broke."},
      {"{name} was afraid, so {he} hid the {thing} {spot}."},
      {"\"Have you seen my {thing}?\" asked {his} {family}."},
      {"\"No,\" said {name}. \"Maybe the {pet} took it.\""},
      {"But {name} felt bad. {His} tummy hurt.", "That night, {name} could not sleep."},
      {"In the morning, {he} said, \"I am sorry. I broke the {thing}.\"",
       "\"It was me,\" said {name} at last. \"I am so sorry.\""},
      {"\"Thank you for telling me,\" said {his} {family} and gave {him} a hug."},
      {"They fixed the {thing} together.", "Then they said sorry to the {pet} and gave it some {food}."}},
     {"{name} learned that it is always better to tell the truth.", "{name} promised to be honest from now on."}},
    {"storm",
     {{"Suddenly, dark clouds came over {place}.", "In the afternoon, the sky turned black."},
      {"The wind blew and the rain began to fall.", "There was a loud crash and everything shook."},
      {"\"We must go home!\" said {friend}.", "\"Run!\" shouted {friend}."},
      {"But then {name} saw a wet {pet}."},
      {"\"We cannot leave it here,\" said {name}.", "\"It has no home,\" said {name}."},
      {"{He} put the {pet} under {his} coat and ran.", "{friend} carried the {pet} all the way."},
      {"At home, {his} {family} made a fire and warm {food}."},
      {"The {pet} {noise} and fell asleep.", "They listened to the storm and told stories."},
      {"In the morning, the sun was back.", "When the rain stopped, they saw a rainbow."},
      {"The {pet} wanted to stay, and {name} said yes.", "\"You can live with us,\" said {name} to the {pet}."}},
     {"{name} learned that a home is warm when friends are inside.", "{name} was glad that everyone was safe."}}};

std::string article(const std::string& word) {
  return (std::string_view("aeiou").find(word[0]) != std::string_view::npos ? "an " : "a ") + word;
}
std::string capital(std::string word) {
  word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return word;
}

class Story {
 public:
  explicit Story(SeededRandom random) : random_(random) { cast(); }
  std::string text();

 private:
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[random_.below(from.size())];
  }
  bool chance(double p) { return random_.uniform() < p; }
  std::string& operator[](const std::string& key) { return words_[key]; }
  void pronouns(bool girl, const std::string& prefix);
  void cast();
  void say(const Words& choices);
  void opening();
  SeededRandom random_;
  std::map<std::string, std::string> words_;
  std::string text_;
};

void Story::pronouns(bool girl, const std::string& prefix) {
  Story& v = *this;
  v[prefix + "he"] = girl ? "she" : "he";
  v[prefix + "him"] = girl ? "her" : "him", v[prefix + "his"] = girl ? "her" : "his";
  v[prefix + "He"] = capital(v[prefix + "he"]), v[prefix + "His"] = capital(v[prefix + "his"]);
}

// Chooses the characters and the things of the story.
void Story::cast() {
  Story& v = *this;
  const bool girl = chance(0.5), animal = chance(0.3), friend_girl = chance(0.5);
  v["name"] = pick(girl ? kGirls : kBoys);
  pronouns(girl, "");
  v["kind"] = animal ? pick(kAnimals).first : girl ? "girl" : "boy";
  v["look"] = pick(kLooks), v["a_look"] = article(v["look"]);
  do v["friend"] = pick(friend_girl ? kGirls : kBoys);
  while (v["friend"] == v["name"]);
  pronouns(friend_girl, "f");
  const Both* pet;
  do pet = &pick(kAnimals);
  while (pet->first == v["kind"]);
  v["pet"] = pet->first, v["noise"] = pet->second;
  v["color"] = pick(kColors), v["thing"] = pick(kThings);
  const Both& place = pick(kPlaces);
  v["place"] = place.first, v["spot"] = place.second;
  const std::string where = place.first.substr(4);
  const bool inside = where == "park" || where == "forest" || where == "garden" || where == "village";
  v["at"] = (inside ? "in " : where == "hill" ? "on " : "at ") + place.first, v["At"] = capital(v["at"]);
  v["food"] = pick(kFoods), v["family"] = pick(kFamily);
  const Both& day = pick(kWeather);
  v["day"] = day.first, v["sky"] = day.second, v["a_day"] = article(day.first);
}

// Appends one of the sentences, with its {words} filled in.
void Story::say(const Words& choices) {
  if (!text_.empty()) text_ += ' ';
  std::string rest = pick(choices);
  for (std::size_t open; (open = rest.find('{')) != rest.npos;) {
    const std::size_t close = rest.find('}', open);
    text_ += rest.substr(0, open);
    rest = words_.at(rest.substr(open + 1, close - open - 1)) + rest.substr(close + 1);
  }
  text_ += rest;
}

void Story::opening() {
  say(kOpenings);
  say({"{name} loved to play {at}.", "{name} lived with {his} {family} and {his} friend {friend}.",
       "{name} had a {color} {thing} and {he} loved it very much.", "Every day, {name} liked to walk to {place}."});
  if (chance(0.7)) say({"It was {a_day} day.", "One {day} day, {name} went to {place}.", "{sky}"});
}

std::string Story::text() {
  Story& v = *this;
  const Plot& plot = pick(kPlots);
  const auto is = [&](const char* name) { return plot.name == name; };
  opening();
  if (!is("surprise") && !is("quarrel") && !is("lesson") && chance(0.6)) {
    say(kHellos);
    say({"\"Hello, {name}!\" said {friend}. \"What are you doing?\"", "{friend} was happy to see {name}.",
         "\"What a {day} day!\" said {friend}."});
  }
  if ((is("rescue") || is("storm")) && v["pet"] == "bear") v["pet"] = "rabbit", v["noise"] = "hopped";
  const Both& fear = pick(kFears);
  v["what"] = fear.first, v["why"] = fear.second;
  const Both& trouble = pick(kTroubles);
  v["trouble"] = trouble.first, v["fix"] = trouble.second;
  for (const Words& sentence : plot.sentences) say(sentence);
  say(plot.morals);
  say(kEndings);
  return text_;
}

}  // namespace

std::string story(std::uint64_t seed, std::uint64_t number) { return Story(SeededRandom({seed, number})).text(); }

}  // namespace lc::tool
