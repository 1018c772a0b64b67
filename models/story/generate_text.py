#!/usr/bin/env python3
"""Short stories for children, made by a grammar.

    python3 generate_text.py --count 3 --seed 1

Every story has a hero, a friend, a place and a plot (a lost thing, a fear, a quarrel, a rescue, a
wish, a surprise, a lesson, a storm). Names, pronouns and things stay the same throughout, so that
a small model can learn to keep them. Same seed, same text.
"""
import argparse
import random

GIRLS = "Lily Mia Anna Sue Emma Rose Nora Ella Zoe Lucy Ivy Clara".split()
BOYS = "Tom Ben Max Sam Leo Jack Finn Oscar Noah Theo Hugo Adam".split()
ANIMALS = [("dog", "barked"), ("cat", "meowed"), ("rabbit", "hopped"), ("bird", "sang"), ("fox", "smiled"),
           ("bear", "nodded"), ("duck", "quacked"), ("mouse", "squeaked"), ("frog", "jumped"), ("horse", "neighed")]
LOOKS = "little small brave kind funny shy clever happy curious gentle quiet".split()
COLORS = "red blue green yellow white brown orange purple".split()
THINGS = "ball kite boat hat book drum car doll spoon shoe bell lamp cup box ring key scarf basket".split()
PLACES = [("the park", "under a tall tree"), ("the forest", "behind a big rock"), ("the beach", "in the warm sand"),
          ("the garden", "between the flowers"), ("the farm", "next to the barn"), ("the river", "near the old bridge"),
          ("the hill", "on top of the hill"), ("the village", "beside the well")]
FOODS = "cake soup bread apples cookies berries pie honey pancakes carrots".split()
WEATHER = [("sunny", "The sun was warm and the sky was blue."), ("windy", "The wind was strong and the leaves were dancing."),
           ("rainy", "The rain fell softly on the roof."), ("cold", "There was snow on the ground."),
           ("foggy", "There was fog over the fields."), ("bright", "The birds were singing in the trees.")]
FAMILY = "mom dad grandma grandpa sister brother".split()
OPENINGS = ["Once upon a time, there was {a_look} {kind} named {name}.", "Once upon a time, {a_look} {kind} named {name} lived near {place}.",
            "There was once {a_look} {kind} named {name}.", "One day, {a_look} {kind} named {name} woke up early.",
            "Long ago, near {place}, there lived {a_look} {kind} named {name}.", "In a small house near {place}, there lived {a_look} {kind} named {name}."]
MORALS = {
    "lost": ["{name} learned to take good care of {his} things.", "{name} learned that friends can help us find what we have lost."],
    "fear": ["{name} learned that being brave means to try even when you are afraid.", "{name} was not afraid any more."],
    "quarrel": ["They learned that sharing is more fun than fighting.", "From that day on, they always took turns."],
    "rescue": ["{name} learned that even a small friend can be a big help.", "{name} was proud to have helped."],
    "wish": ["{name} learned that good things take time.", "{name} was happy that {he} did not give up."],
    "surprise": ["{name} said it was the best day ever.", "{name} knew that {he} had the best friends in the world."],
    "lesson": ["{name} learned that it is always better to tell the truth.", "{name} promised to be honest from now on."],
    "storm": ["{name} learned that a home is warm when friends are inside.", "{name} was glad that everyone was safe."],
}
ENDINGS = ["And they lived happily ever after.", "That night, {name} slept very well.", "They were friends forever.",
           "Then they all went home and ate {food}.", "{name} smiled and hugged {friend}.", "It was a very good day."]
HELLOS = ['"Hello, {friend}!" said {name}.', '"Hi, {friend}," said {name} with a smile.', '{name} waved to {friend}. "Come and play with me!"']


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


class Story:
    def __init__(self, rng):
        self.r = rng
        pick = rng.choice
        self.v = v = {}
        girl = rng.random() < 0.5
        animal_hero = rng.random() < 0.3
        v["name"] = pick(GIRLS if girl else BOYS)
        v["he"], v["him"], v["his"] = ("she", "her", "her") if girl else ("he", "him", "his")
        v["He"], v["His"] = v["he"].capitalize(), v["his"].capitalize()
        v["kind"] = pick(ANIMALS)[0] if animal_hero else ("girl" if girl else "boy")
        v["look"] = pick(LOOKS)
        v["a_look"] = article(v["look"])
        friend_girl = rng.random() < 0.5
        v["friend"] = pick([n for n in (GIRLS if friend_girl else BOYS) if n != v["name"]])
        v["fhe"], v["fhim"], v["fhis"] = ("she", "her", "her") if friend_girl else ("he", "him", "his")
        v["fHe"] = v["fhe"].capitalize()
        v["pet"], v["noise"] = pick([a for a in ANIMALS if a[0] != v["kind"]])
        v["color"], v["thing"] = pick(COLORS), pick(THINGS)
        v["place"], v["spot"] = pick(PLACES)
        v["at"] = ("in " if v["place"].split()[1] in ("park", "forest", "garden", "village") else "on " if v["place"].endswith("hill") else "at ") + v["place"]
        v["At"] = v["at"].capitalize()
        v["food"], v["family"] = pick(FOODS), pick(FAMILY)
        v["day"], v["sky"] = pick(WEATHER)
        v["a_day"] = article(v["day"])

    def s(self, *choices):
        return self.r.choice(choices).format(**self.v)

    def opening(self):
        out = [self.s(*OPENINGS)]
        out.append(self.s("{name} loved to play {at}.", "{name} lived with {his} {family} and {his} friend {friend}.",
                          "{name} had a {color} {thing} and {he} loved it very much.", "Every day, {name} liked to walk to {place}."))
        if self.r.random() < 0.7:
            out.append(self.s("It was {a_day} day.", "One {day} day, {name} went to {place}.", "{sky}"))
        return out

    def meet(self):
        out = [self.s(*HELLOS)]
        out.append(self.s('"Hello, {name}!" said {friend}. "What are you doing?"', '{friend} was happy to see {name}.',
                          '"What a {day} day!" said {friend}.'))
        return out

    def lost(self):
        out = [self.s("One day, {name} could not find {his} {color} {thing}.", "But one morning, the {color} {thing} was gone."),
               self.s("{He} looked under the bed and behind the door, but it was not there.", "{He} looked in every room, but {he} could not find it."),
               self.s("{name} was very sad.", "{name} started to cry.", "{He} did not know what to do."),
               self.s('"Why are you sad?" asked {friend}.', '{friend} came and asked, "What is wrong, {name}?"'),
               self.s('"I lost my {thing}," said {name}.', '"My {color} {thing} is gone," said {name}.'),
               self.s('"Do not worry. I will help you," said {friend}.', '"Let us look for it together," said {friend}.')]
        out += [self.s("They went to {place} and looked everywhere.", "They walked to {place} and asked the {pet}."),
                self.s("The {pet} {noise} and showed them the way.", "A {pet} came and helped them look."),
                self.s("At last, they found the {thing} {spot}.", "And there it was! The {color} {thing} was {spot}."),
                self.s('"Thank you so much!" said {name}.', "{name} was so happy that {he} jumped up and down.")]
        return out

    def fear(self):
        what, why = self.r.choice([("the dark", "It was black and quiet."), ("the deep water", "It was cold and deep."),
                                   ("the high bridge", "It was old and it moved in the wind."), ("loud noises", "They made {his} heart beat fast."),
                                   ("the big slide", "It was so very high.")])
        self.v["what"] = what
        return [self.s("But {name} was afraid of {what}."), why.format(**self.v),
                self.s('"I cannot do it," said {name}.', '"I am too small," said {name}.'),
                self.s("{friend} took {his} hand.", "{friend} sat down next to {him}."),
                self.s('"I was afraid too," said {friend}. "We can do it together."', '"Take a deep breath," said {friend}. "I am here with you."'),
                self.s("{name} closed {his} eyes and counted to three.", "{name} took a deep breath and made a small step."),
                self.s("Then {he} made one more step, and one more.", "{He} was very careful and did not look down."),
                self.s('"I did it!" {he} shouted.', '"Look, {friend}, I did it!" said {name}.'),
                self.s("The {pet} {noise} and everyone was happy.", "{friend} clapped {fhis} hands.")]

    def quarrel(self):
        return [self.s("{name} and {friend} found a {color} {thing} {spot}.", "One day, {name} and {friend} saw a {color} {thing} {at}."),
                self.s('"It is mine!" said {name}.', '"I saw it first!" said {name}.'), self.s('"No, it is mine!" said {friend}.'),
                self.s("They pulled and pulled until the {thing} broke.", "They pulled so hard that they both fell down."),
                self.s("Now they were both sad.", "{name} and {friend} did not talk for a long time."),
                self.s("The old {pet} saw them and shook its head.", "{His} {family} saw them and came outside."),
                self.s('"If you share, you can both play," said the {pet}.', '"You are friends," said {name}\'s {family}. "You can share."'),
                self.s('"I am sorry," said {name}.', '{name} looked at {friend} and said, "I am sorry."'),
                self.s('"I am sorry too," said {friend}.'),
                self.s("They fixed the {thing} together and played all day.", "Then they played with the {thing} together until the sun went down.")]

    def rescue(self):
        trouble, fix = self.r.choice([("had fallen into a deep hole", "a long rope"), ("was stuck in a tree", "a tall ladder"),
                                      ("had hurt its foot", "a clean cloth"), ("was caught under a branch", "a strong stick"),
                                      ("could not swim back", "a little boat")])
        self.v["trouble"], self.v["fix"] = trouble, fix
        return [self.s("On the way to {place}, {name} heard a sound.", "{At}, {name} heard someone cry."),
                self.s("It was a small {pet}.", "{He} saw a little {pet}."), self.s("The {pet} {trouble}."),
                self.s('"Help me, please!" said the {pet}.', '"Oh no! Poor {pet}," said {name}.'),
                self.s("{name} thought hard. Then {he} had an idea.", "{name} ran to get {friend}."),
                self.s("{name} and {friend} came back with {fix}.", "{friend} brought {fix}."),
                self.s("They worked together and did not stop.", "It was hard work, but they did not give up."),
                self.s("Soon, the {pet} was safe.", "At last, the {pet} was free."),
                self.s('"Thank you, {name}! Thank you, {friend}!" said the {pet}.', "The {pet} {noise} to say thank you."),
                self.s("{name} gave the {pet} some {food}.", "They sat in the grass and ate {food} together.")]

    def wish(self):
        return [self.s("{name} wanted a {color} {thing} more than anything.", "{name} had one big wish. {He} wanted a {color} {thing}."),
                self.s('"Can I have one, please?" {he} asked {his} {family}.'),
                self.s('"You can make one," said {his} {family}. "It will take some time."', '"You must work for it," said {his} {family}.'),
                self.s("So {name} helped {friend} {at} every day.", "So {name} picked apples and carried water every day."),
                self.s("On the first day, {he} was tired.", "It was hard, and {his} hands hurt."),
                self.s('"I will not give up," said {name}.'), self.s("On the second day, it was a little easier.", "{friend} came to help {him}."),
                self.s("On the last day, {his} {family} gave {him} a box.", "After one week, the work was done."),
                self.s("{name} opened it, and inside was a {color} {thing}.", "And there it was, a new {color} {thing}."),
                self.s("{He} danced with joy.", '"It is beautiful!" said {name}.')]

    def surprise(self):
        return [self.s("It was {name}'s birthday, but nobody said a word.", "{name} woke up and it was {his} birthday."),
                self.s("{He} looked for {friend}, but {friend} was not at home.", "{He} waited for {friend}, but nobody came."),
                self.s("{name} walked to {place} all alone.", "{name} was sad and went to {place}."),
                self.s("{He} sat down {spot}.", "It was very quiet there."),
                self.s('Then {he} heard a whisper. "Shh! {He} is here!"', "Then {he} saw something {color} move."),
                self.s('"Surprise!" shouted {friend} and all the friends.'),
                self.s("There was a big cake and a {color} {thing}.", "There were {food} and songs and games."),
                self.s("Even the {pet} was there and {noise}.", "The {pet} wore a funny hat."),
                self.s("{name} laughed and laughed.", '"I thought you forgot me!" said {name}.'),
                self.s('"We would never forget you," said {friend}.')]

    def lesson(self):
        return [self.s("One day, {name} played with the {color} {thing} inside the house.", "One day, {name} took the {color} {thing} of {his} {family}."),
                self.s('"Be careful," {his} {family} had said.'), self.s("But {name} ran too fast, and the {thing} fell and broke."),
                self.s("{name} was afraid, so {he} hid the {thing} {spot}."),
                self.s('"Have you seen my {thing}?" asked {his} {family}.'), self.s('"No," said {name}. "Maybe the {pet} took it."'),
                self.s("But {name} felt bad. {His} tummy hurt.", "That night, {name} could not sleep."),
                self.s('In the morning, {he} said, "I am sorry. I broke the {thing}."', '"It was me," said {name} at last. "I am so sorry."'),
                self.s('"Thank you for telling me," said {his} {family} and gave {him} a hug.'),
                self.s("They fixed the {thing} together.", "Then they said sorry to the {pet} and gave it some {food}.")]

    def storm(self):
        return [self.s("Suddenly, dark clouds came over {place}.", "In the afternoon, the sky turned black."),
                self.s("The wind blew and the rain began to fall.", "There was a loud crash and everything shook."),
                self.s('"We must go home!" said {friend}.', '"Run!" shouted {friend}.'), self.s("But then {name} saw a wet {pet}."),
                self.s('"We cannot leave it here," said {name}.', '"It has no home," said {name}.'),
                self.s("{He} put the {pet} under {his} coat and ran.", "{friend} carried the {pet} all the way."),
                self.s("At home, {his} {family} made a fire and warm {food}."), self.s("The {pet} {noise} and fell asleep.", "They listened to the storm and told stories."),
                self.s("In the morning, the sun was back.", "When the rain stopped, they saw a rainbow."),
                self.s("The {pet} wanted to stay, and {name} said yes.", '"You can live with us," said {name} to the {pet}.')]

    def text(self):
        plot = self.r.choice(list(MORALS))
        parts = self.opening()
        if plot not in ("surprise", "quarrel", "lesson") and self.r.random() < 0.6:
            parts += self.meet()
        if plot in ("rescue", "storm") and self.v["pet"] == "bear":
            self.v["pet"], self.v["noise"] = "rabbit", "hopped"
        parts += getattr(self, plot)()
        parts.append(self.s(*MORALS[plot]))
        parts.append(self.s(*ENDINGS))
        return " ".join(parts)


def stories(seed):
    rng = random.Random(seed)
    while True:
        yield Story(rng).text()


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--count", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    source = stories(a.seed)
    for _ in range(a.count):
        print(next(source) + "\n")
